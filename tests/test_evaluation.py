"""Accuracies and scale selection of networks whose answers are known."""

import keras
import numpy as np
import pytest
from keras import ops

from keras_gdrn.evaluation import (
    scale_generalisation,
    scale_selection_histogram,
    scale_shares,
)
from keras_gdrn.layers import ScaleChannels, ScalePooling
from keras_gdrn.layers._scale_scope import current_scales
from keras_gdrn.models import gauss_der_resnet, with_sigma0

CLASSES = 3
SIGMA0 = (0.5, 1.0, 2.0)


class KnowsItsScale(keras.layers.Layer):
    """Scores the class that an image states, at the scale that fits its size best.

    An "image" is (class, size); the score is `10 - |log2(size) - log2(σ_0)|`, and zero
    for the other classes.
    """

    def call(self, images):
        parts = ops.split(images, len(current_scales()), axis=0)
        scored = zip(parts, current_scales(), strict=True)
        return ops.concatenate([self._scores(part, s) for part, s in scored], axis=0)

    def _scores(self, images, sigma0):
        fit = 10 - ops.abs(ops.log2(images[:, 1:]) - np.log2(sigma0))
        return fit * ops.one_hot(ops.cast(images[:, 0], "int32"), CLASSES)

    def compute_output_shape(self, input_shape):
        return (input_shape[0], CLASSES)


def network(pooling="max", after=None, **options):
    image = keras.Input((2,))
    x = ScaleChannels(KnowsItsScale(), SIGMA0)(image)
    x = ScalePooling(pooling, **options)(x)
    return keras.Model(image, x if after is None else after(x))


def images(size, count=7):
    labels = np.arange(count) % CLASSES
    return np.stack([labels, np.full(count, size)], axis=1).astype("float32"), labels


def sized(*sizes):
    return {size: images(size) for size in sizes}


class TestScaleGeneralisation:
    def test_counts_correct_images_and_sorts_by_factor(self):
        x, y = images(1.0, count=8)
        wrong = y.copy()
        wrong[:2] = (wrong[:2] + 1) % CLASSES
        found = scale_generalisation(network(), {2: (x, y), 0.5: (x, wrong)})
        np.testing.assert_array_equal(found.factors, [0.5, 2.0])
        np.testing.assert_array_equal(found.accuracies, [0.75, 1.0])

    @pytest.mark.parametrize("batch_size", [1, 3, 7, 100])
    def test_every_image_counts_once_whatever_the_batches(self, batch_size):
        x, y = images(1.0)
        y[-1] = (y[-1] + 1) % CLASSES
        found = scale_generalisation(network(), {1: (x, y)}, batch_size=batch_size)
        np.testing.assert_allclose(found.accuracies, [6 / 7])

    def test_takes_integer_column_one_hot_and_smoothed_labels(self):
        x, y = images(1.0)
        one_hot = np.eye(CLASSES)[y]
        kinds = {
            1: (x, y),
            2: (x, y[:, None]),
            3: (x, one_hot),
            4: (x, 0.9 * one_hot + 0.1 / CLASSES),
            5: (x, y.astype("float32")),
        }
        found = scale_generalisation(network(), kinds)
        np.testing.assert_array_equal(found.accuracies, np.ones(5))

    def test_takes_tf_data_py_datasets_and_iterables(self):
        tf = pytest.importorskip("tensorflow")
        x, y = images(1.0)

        class Pairs(keras.utils.PyDataset):
            num_batches = 2

            def __getitem__(self, index):
                part = slice(4 * index, 4 * index + 4)
                return x[part], y[part]

        data = tf.data.Dataset.from_tensor_slices((x, y)).batch(4)
        kinds = {1: data, 2: Pairs(), 3: iter([(x, y)]), 4: [(x, y, np.ones(7))]}
        found = scale_generalisation(network(), kinds)
        np.testing.assert_array_equal(found.accuracies, np.ones(4))

    def test_takes_a_subclassed_model_in_bfloat16(self):
        class Plain(keras.Model):
            def call(self, x):
                return ops.one_hot(ops.cast(x[:, 0], "int32"), 3, dtype="bfloat16")

        found = scale_generalisation(Plain(), sized(1))
        np.testing.assert_array_equal(found.accuracies, [1.0])


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

    @pytest.mark.parametrize("pooling", ["max", "logsumexp", "average"])
    def test_rows_of_a_real_network_sum_to_one(self, pooling):
        model = gauss_der_resnet((8, 8, 1), 3, [4], 1.2, SIGMA0, pooling, 0.5)
        x = np.random.default_rng(0).random((5, 8, 8, 1), "float32")
        found = scale_selection_histogram(model, {0.5: [x], 1: [x]})
        np.testing.assert_allclose(found.shares.sum(axis=1), [1, 1])
        assert found.shares.min() >= 0

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
        x = keras.layers.Normalization(mean=[0, 0], variance=[1, 0.25])(image)
        x = ScaleChannels(KnowsItsScale(), SIGMA0)(x)  # sees twice the size
        model = keras.Model(image, ScalePooling()(x))
        found = scale_selection_histogram(model, sized(1.0))
        np.testing.assert_array_equal(found.shares, [[0, 0, 1]])


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


class TestErrors:
    @pytest.mark.parametrize(
        ("datasets", "message"),
        [
            ({}, "`datasets` must map"),
            ([images(1.0)], "`datasets` must map"),
            ({0.0: images(1.0)}, "positive, finite size factors. Received: 0.0"),
            ({"1": images(1.0)}, "size factors. Received: '1'"),
            ({1: []}, "At size factor 1: the data are empty"),
            ({1: images(1.0, count=0)}, "At size factor 1: the data are empty"),
            ({2: "digits"}, "At size factor 2: the data must be a pair"),
            ({1: [images(1.0)[0][0]]}, r"batches of shape \(None, 2\)"),
            ({1: (images(1.0)[0], np.zeros(6))}, r"as many labels .* \(7, 2\) and"),
            ({1: (images(1.0)[0], np.zeros((7, 2)))}, r"Received: shape \(7, 2\)"),
            ({1: (images(1.0)[0], np.full(7, 3))}, r"the 3 classes .* \[3\]"),
            ({1: (images(1.0)[0], np.full(7, 0.5))}, r"the 3 classes .* \[0\.5\]"),
            ({1: (images(1.0)[0], np.full(7, -1))}, r"the 3 classes .* \[-1\]"),
            ({1: [images(1.0)[0]]}, "images and labels"),
            ({1: (np.full((2, 2), np.nan, "float32"), [0, 0])}, "not all finite"),
        ],
    )
    def test_unusable_data(self, datasets, message):
        with pytest.raises(ValueError, match=message):
            scale_generalisation(network(), datasets)

    def test_endless_data(self):
        tf = pytest.importorskip("tensorflow")
        data = tf.data.Dataset.from_tensors(images(1.0)).repeat()
        with pytest.raises(ValueError, match=r"size factor 1: .* without end"):
            scale_generalisation(network(), {1: data})

    def test_model_of_maps(self):
        image = keras.Input((2,))
        model = keras.Model(image, keras.layers.Reshape((1, 2))(image))
        with pytest.raises(ValueError, match=r"Received: an output of shape \(7, 1, 2"):
            scale_generalisation(model, sized(1.0))

    def test_model_without_scale_channels(self):
        image = keras.Input((2,))
        model = keras.Model(image, keras.layers.Dense(3)(image), name="plain")
        with pytest.raises(ValueError, match=r"one `ScaleChannels` .*'plain' with 0"):
            scale_selection_histogram(model, sized(1.0))

    def test_model_without_scale_pooling(self):
        image = keras.Input((2,))
        x = ScaleChannels(KnowsItsScale(), SIGMA0)(image)
        model = keras.Model(image, keras.layers.GlobalMaxPooling1D()(x))
        with pytest.raises(ValueError, match=r"one `ScalePooling` .* with 0"):
            scale_selection_histogram(model, sized(1.0))

    def test_model_with_another_layer_of_classes(self):
        model = network(after=keras.layers.Dense(4))
        with pytest.raises(ValueError, match=r"the output \(None, 4\)"):
            scale_selection_histogram(model, sized(1.0))
