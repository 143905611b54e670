"""Scale selection of networks whose answers are known."""

import keras
import numpy as np
import pytest

from keras_gdrn.evaluation import (
    scale_generalization,
    scale_selection_histogram,
    scale_shares,
)
from keras_gdrn.layers import ScaleChannels, ScalePooling
from keras_gdrn.models import gauss_der_resnet, with_sigma0
from tests.evaluation._known import (
    CLASSES,
    SIGMA0,
    KnowsItsScale,
    images,
    network,
    sized,
)


class TestScaleSelectionHistogram:
    def test_max_pooling_selects_the_channel_of_the_size(self):
        found = scale_selection_histogram(network("max"), sized(2.0, 0.5, 1.0))
        np.testing.assert_array_equal(found.factors, [0.5, 1.0, 2.0])
        np.testing.assert_allclose(found.sigma0, SIGMA0)
        np.testing.assert_array_equal(found.shares, np.eye(3))

    def test_mixed_sizes_share_by_their_numbers(self):
        x = np.concatenate([images(0.5, 3)[0], images(2.0, 1)[0]])
        found = scale_selection_histogram(network("max"), {1: (x, np.zeros(4))})
        np.testing.assert_array_equal(found.shares, [[0.75, 0.0, 0.25]])

    def test_logsumexp_gives_softmax_weights(self):
        found = scale_selection_histogram(network("logsumexp"), sized(1.0))
        weights = np.exp([-1.0, 0.0, -1.0])
        np.testing.assert_allclose(found.shares[0], weights / weights.sum(), rtol=1e-5)

    def test_average_gives_shares_of_the_sum(self):
        found = scale_selection_histogram(network("average"), sized(0.5))
        np.testing.assert_allclose(found.shares[0], np.array([10, 9, 8]) / 27)

    def test_takes_the_predicted_class_not_the_label(self):
        x, y = images(2.0)
        wrong = scale_selection_histogram(network(), {1: (x, (y + 1) % CLASSES)})
        absent = scale_selection_histogram(network(), {1: [x]})
        np.testing.assert_array_equal(wrong.shares, [[0, 0, 1]])
        np.testing.assert_array_equal(absent.shares, [[0, 0, 1]])

    def test_softmax_after_the_pooling_changes_nothing(self):
        model = network("logsumexp", after=keras.layers.Softmax())
        found = scale_selection_histogram(model, sized(1.0))
        plain = scale_selection_histogram(network("logsumexp"), sized(1.0))
        np.testing.assert_allclose(found.shares, plain.shares)

    def test_leaves_the_model_as_it_was(self):
        model = network(dropout=0.5)
        first = scale_selection_histogram(model, sized(1.0))
        second = scale_selection_histogram(model, sized(1.0))
        np.testing.assert_array_equal(first.shares, second.shares)
        # A layer that was called a second time would have no one output.
        assert all(layer.output is not None for layer in model.layers)

    def test_takes_models_that_share_layers(self):
        model = network("max", dropout=0.5)
        fewer = with_sigma0(model, [2.0, 0.5])
        found = scale_selection_histogram(fewer, sized(0.5, 2.0))
        np.testing.assert_array_equal(found.sigma0, [2.0, 0.5])
        np.testing.assert_array_equal(found.shares, [[0, 1], [1, 0]])

    def test_uses_the_weights_of_other_layers(self):
        image = keras.Input((2,))
        double_size = keras.layers.Dense(2, use_bias=False)
        x = ScaleChannels(KnowsItsScale(), SIGMA0)(double_size(image))
        model = keras.Model(image, ScalePooling()(x))
        double_size.set_weights([np.diag([1.0, 2.0])])
        found = scale_selection_histogram(model, sized(1.0))
        np.testing.assert_array_equal(found.shares, [[0, 0, 1]])


class TestAccuracies:
    @pytest.mark.parametrize(
        ("pooling", "batch_size"), [("max", 3), ("logsumexp", 64), ("average", 3)]
    )
    def test_equal_those_of_scale_generalization(self, pooling, batch_size):
        model = network(pooling, dropout=0.5, after=keras.layers.Softmax())
        labels = np.array([0, 1, 2, 1, 1, 0, 2])  # four of seven are right
        smoothed = 0.9 * np.eye(CLASSES)[labels] + 0.1 / CLASSES
        x, right = images(1.0)
        tests = {
            6: (x, right),
            1: (x, labels),
            2: (x, labels[:, None]),
            3: (x, np.eye(CLASSES)[labels]),
            4: (x, smoothed),
            5: [(x[:4], labels[:4]), [x[4:], labels[4:], np.ones(3)]],
        }
        found = scale_selection_histogram(model, tests, batch_size=batch_size)
        expected = scale_generalization(model, tests, batch_size=batch_size)
        np.testing.assert_array_equal(found.factors, expected.factors)
        np.testing.assert_array_equal(found.accuracies, expected.accuracies)
        np.testing.assert_allclose(found.accuracies, [4 / 7] * 5 + [1])

    def test_equal_those_of_a_real_network(self):
        model = gauss_der_resnet(
            (8, 8, 1), 3, [4], 1.2, SIGMA0, "max", 0.5, spatial_selection="center"
        )
        draw = np.random.default_rng(0)
        x = draw.normal(size=(2, 40, 8, 8, 1)).astype("float32")
        y = draw.integers(3, size=(2, 40))
        tests = {0.5: (x[0], y[0]), 2: (x[1], y[1])}
        found = scale_selection_histogram(model, tests).accuracies
        assert found is not None and found.min() > 0 and found.max() < 1
        expected = scale_generalization(model, tests).accuracies
        np.testing.assert_array_equal(found, expected)

    def test_come_from_the_same_pass(self):
        x, y = images(2.0)
        once = iter([(x[:4], y[:4]), (x[4:], y[4:])])
        found = scale_selection_histogram(network(), {1: once})
        np.testing.assert_array_equal(found.shares, [[0, 0, 1]])
        np.testing.assert_array_equal(found.accuracies, [1])

    def test_of_tf_data(self):
        tf = pytest.importorskip("tensorflow")
        data = tf.data.Dataset.from_tensor_slices(images(1.0)).batch(4)
        found = scale_selection_histogram(network(), {1: data})
        np.testing.assert_array_equal(found.accuracies, [1])

    def test_are_none_without_labels(self):
        x, _ = images(1.0)
        tests = {1: [x], 2: [(x,)], 3: [(x, None)]}
        assert scale_selection_histogram(network(), tests).accuracies is None


@pytest.mark.seen_on_tensorflow("of NumPy alone")
class TestScaleShares:
    def test_ties_share_equally(self):
        shares = scale_shares(np.array([[2.0, 2.0, 1.0, 2.0]]), "max")
        np.testing.assert_allclose(shares, [[1 / 3, 1 / 3, 0, 1 / 3]])

    @pytest.mark.parametrize("pooling", ["max", "logsumexp", "average"])
    def test_zeros_share_equally(self, pooling):
        np.testing.assert_allclose(scale_shares(np.zeros((2, 4)), pooling), 0.25)

    def test_large_scores_do_not_overflow(self):
        shares = scale_shares(np.array([[1e4, 1e4 + 1]]), "logsumexp")
        np.testing.assert_allclose(shares[0, 1], 1 / (1 + np.exp(-1)))

    def test_logsumexp_share_is_the_derivative_of_the_pooled_score(self):
        scores, step = np.array([0.3, -1.0, 2.0]), 1e-6
        for channel, share in enumerate(scale_shares(scores[None], "logsumexp")[0]):
            moved = scores + step * (np.arange(3) == channel)
            slope = np.logaddexp.reduce(moved) - np.logaddexp.reduce(scores)
            np.testing.assert_allclose(slope / step, share, rtol=1e-4)

    def test_refuses_a_negative_score_in_an_average(self):
        with pytest.raises(ValueError, match=r"scores >= 0.* a score of -1"):
            scale_shares(np.array([[-1.0, 2.0]]), "average")

    def test_refuses_an_unknown_pooling(self):
        with pytest.raises(ValueError, match="pooling='median'"):
            scale_shares(np.ones((1, 2)), "median")


@pytest.mark.seen_on_tensorflow("models and labels are looked at by Python")
class TestErrors:
    def test_model_without_scale_channels(self):
        image = keras.Input((2,))
        model = keras.Model(image, keras.layers.Dense(3)(image), name="plain")
        with pytest.raises(ValueError, match=r"one `ScaleChannels`.*'plain' with 0"):
            scale_selection_histogram(model, sized(1.0))

    def test_model_without_scale_pooling(self):
        image = keras.Input((2,))
        x = ScaleChannels(KnowsItsScale(), SIGMA0)(image)
        model = keras.Model(image, keras.layers.GlobalMaxPooling1D()(x))
        with pytest.raises(ValueError, match=r"one `ScalePooling`.* with 0"):
            scale_selection_histogram(model, sized(1.0))

    def test_model_with_another_layer_of_classes(self):
        model = network(after=keras.layers.Dense(4))
        with pytest.raises(ValueError, match=r"the output \(None, 4\)"):
            scale_selection_histogram(model, sized(1.0))

    @pytest.mark.parametrize("unlabeled_first", [True, False])
    def test_labels_at_some_factors_only(self, unlabeled_first):
        x, y = images(1.0)
        kinds = [[x], [(x, y)]] if unlabeled_first else [[(x, y)], [x]]
        second = iter(kinds[1] * 2)
        with pytest.raises(ValueError, match=r"size factor 2: .* or none of them"):
            scale_selection_histogram(network(), {1: kinds[0], 2: second})
        assert len(list(second)) == 1  # the first of its batches tells

    def test_labels_of_some_batches_only(self):
        x, y = images(1.0)
        with pytest.raises(ValueError, match=r"size factor 1: .* or none of them"):
            scale_selection_histogram(network(), {1: [(x, y), (x, None)]})

    @pytest.mark.parametrize(
        ("labels", "message"),
        [(np.full(7, 3), r"the 3 classes .* \[3\]"), (np.zeros((7, 2)), r"\(7, 2\)")],
    )
    def test_labels_that_do_not_fit(self, labels, message):
        with pytest.raises(ValueError, match=message):
            scale_selection_histogram(network(), {1: (images(1.0)[0], labels)})
