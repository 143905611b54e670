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

X, Y = images(1.0)
SOFTMAX = np.exp([-1.0, 0.0, -1.0])


class TestScaleSelectionHistogram:
    def test_max_pooling_selects_the_channel_of_the_size(self):
        found = scale_selection_histogram(network("max"), sized(2.0, 0.5, 1.0))
        np.testing.assert_array_equal(found.factors, [0.5, 1.0, 2.0])
        np.testing.assert_allclose(found.sigma0, SIGMA0)
        np.testing.assert_array_equal(found.shares, np.eye(3))

    @pytest.mark.parametrize(
        ("pooling", "after", "size", "expected"),
        [
            ("logsumexp", None, 1.0, SOFTMAX / SOFTMAX.sum()),
            ("logsumexp", keras.layers.Softmax(), 1.0, SOFTMAX / SOFTMAX.sum()),
            ("average", None, 0.5, np.array([10, 9, 8]) / 27),
        ],
    )
    def test_other_poolings_share(self, pooling, after, size, expected):
        found = scale_selection_histogram(network(pooling, after), sized(size))
        np.testing.assert_allclose(found.shares, [expected], rtol=1e-5)

    def test_mixed_sizes_share_by_their_numbers(self):
        x = np.concatenate([images(0.5, 3)[0], images(2.0, 1)[0]])
        found = scale_selection_histogram(network("max"), {1: (x, np.zeros(4))})
        np.testing.assert_array_equal(found.shares, [[0.75, 0.0, 0.25]])

    def test_takes_the_predicted_class_not_the_label_and_all_in_one_pass(self):
        wrong = (Y + 1) % CLASSES
        once = iter([(X[:4], wrong[:4]), (X[4:], wrong[4:])])
        found = scale_selection_histogram(network(), {1: once})
        np.testing.assert_array_equal(found.shares, [[0, 1, 0]])
        np.testing.assert_array_equal(found.accuracies, [0])

    @pytest.mark.seen_on_tensorflow("models are looked at by Python")
    def test_leaves_the_model_as_it_was_also_if_it_shares_layers(self):
        model = network(dropout=0.5)
        fewer = with_sigma0(model, [2.0, 0.5])
        for _ in "ab":
            found = scale_selection_histogram(fewer, sized(0.5, 2.0))
            np.testing.assert_array_equal(found.sigma0, [2.0, 0.5])
            np.testing.assert_array_equal(found.shares, [[0, 1], [1, 0]])
        # A layer that was called a second time would have no one output.
        assert all(layer.output is not None for layer in model.layers)

    @pytest.mark.seen_on_tensorflow("models are looked at by Python")
    def test_uses_the_weights_of_other_layers(self):
        image = keras.Input((2,))
        double_size = keras.layers.Dense(2, use_bias=False)
        x = ScaleChannels(KnowsItsScale(), SIGMA0)(double_size(image))
        model = keras.Model(image, ScalePooling()(x))
        double_size.set_weights([np.diag([1.0, 2.0])])
        found = scale_selection_histogram(model, sized(1.0))
        np.testing.assert_array_equal(found.shares, [[0, 0, 1]])


class TestAccuracies:
    @pytest.mark.seen_on_tensorflow("data are looked at by NumPy")
    @pytest.mark.parametrize(("pooling", "size"), [("max", 3), ("average", 64)])
    def test_equal_those_of_scale_generalization(self, pooling, size):
        tf = pytest.importorskip("tensorflow")
        model = network(pooling, keras.layers.Softmax(), dropout=0.5)
        labels = np.array([0, 1, 2, 1, 1, 0, 2])  # four of seven are right
        tests = {
            6: (X, Y),
            1: (X, labels),
            2: (X, labels[:, None]),
            3: (X, 0.9 * np.eye(CLASSES)[labels] + 0.1 / CLASSES),
            4: tf.data.Dataset.from_tensor_slices((X, labels)).batch(4),
            5: [(X[:4], labels[:4]), [X[4:], labels[4:], np.ones(3)]],
        }
        found = scale_selection_histogram(model, tests, batch_size=size)
        expected = scale_generalization(model, tests, batch_size=size)
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

    def test_are_none_without_labels(self):
        found = scale_selection_histogram(
            network(), {1: [X], 2: [(X,)], 3: [(X, None)]}
        )
        np.testing.assert_array_equal(found.shares, [[0, 1, 0]] * 3)
        assert found.accuracies is None


@pytest.mark.seen_on_tensorflow("computed by NumPy")
class TestScaleShares:
    @pytest.mark.parametrize(
        ("scores", "pooling", "expected"),
        [
            ([2.0, 2.0, 1.0, 2.0], "max", [1 / 3, 1 / 3, 0, 1 / 3]),
            *(([0, 0, 0, 0], pooling, [0.25] * 4) for pooling in ("max", "average")),
            ([0, 0, 0, 0], "logsumexp", [0.25] * 4),
            ([1e4, 1e4 + 1], "logsumexp", np.array([1, np.e]) / (1 + np.e)),
            ([1.0, 3.0], "average", [0.25, 0.75]),
        ],
    )
    def test_shares(self, scores, pooling, expected):
        np.testing.assert_allclose(
            scale_shares(np.array([scores]), pooling), [expected]
        )

    def test_logsumexp_share_is_the_derivative_of_the_pooled_score(self):
        scores, step = np.array([0.3, -1.0, 2.0]), 1e-6
        for channel, share in enumerate(scale_shares(scores[None], "logsumexp")[0]):
            moved = scores + step * (np.arange(3) == channel)
            slope = np.logaddexp.reduce(moved) - np.logaddexp.reduce(scores)
            np.testing.assert_allclose(slope / step, share, rtol=1e-4)

    @pytest.mark.parametrize(
        ("pooling", "message"),
        [("average", r"scores >= 0.* a score of -1"), ("median", "pooling='median'")],
    )
    def test_refused(self, pooling, message):
        with pytest.raises(ValueError, match=message):
            scale_shares(np.array([[-1.0, 2.0]]), pooling)


@pytest.mark.seen_on_tensorflow("models and labels are looked at by Python")
class TestErrors:
    def test_models_of_another_kind(self):
        image = keras.Input((2,))
        x = ScaleChannels(KnowsItsScale(), SIGMA0)(image)
        for model, message in (
            (keras.Model(image, keras.layers.Dense(3)(image)), "`ScaleChannels`.* 0"),
            (keras.Model(image, keras.layers.Flatten()(x)), "one `ScalePooling`.* 0"),
            (network(after=keras.layers.Dense(4)), r"the output \(None, 4\)"),
        ):
            with pytest.raises(ValueError, match=message):
                scale_selection_histogram(model, sized(1.0))

    @pytest.mark.parametrize("unlabeled_first", [True, False])
    def test_labels_at_some_factors_only(self, unlabeled_first):
        kinds = [[X], [(X, Y)]] if unlabeled_first else [[(X, Y)], [X]]
        second = iter(kinds[1] * 2)
        with pytest.raises(ValueError, match=r"size factor 2: .* or none of them"):
            scale_selection_histogram(network(), {1: kinds[0], 2: second})
        assert len(list(second)) == 1  # the first of its batches tells
        with pytest.raises(ValueError, match=r"size factor 1: .* or none of them"):
            scale_selection_histogram(network(), {1: [(X, Y), (X, None)]})

    def test_labels_that_do_not_fit(self):
        with pytest.raises(ValueError, match=r"the 3 classes .*\[3\b"):
            scale_selection_histogram(network(), {1: (X, np.full(7, 3))})
