"""Accuracies of networks whose answers are known."""

import keras
import numpy as np
import pytest
from keras import ops

from keras_gdrn.evaluation import scale_generalization
from tests.evaluation._known import CLASSES, images, network, sized


class TestScaleGeneralization:
    def test_counts_correct_images_and_sorts_by_factor(self):
        x, y = images(1.0, count=8)
        wrong = y.copy()
        wrong[:2] = (wrong[:2] + 1) % CLASSES
        found = scale_generalization(network(), {2: (x, y), 0.5: (x, wrong)})
        np.testing.assert_array_equal(found.factors, [0.5, 2.0])
        np.testing.assert_array_equal(found.accuracies, [0.75, 1.0])

    def test_every_image_counts_once_whatever_the_batches(self):
        x, y = images(1.0)
        y[-1] = (y[-1] + 1) % CLASSES
        for size in (1, 3, 7, 100):
            found = scale_generalization(network(), {1: (x, y)}, batch_size=size)
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
        found = scale_generalization(network(), kinds)
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
        found = scale_generalization(network(), kinds)
        np.testing.assert_array_equal(found.accuracies, np.ones(4))

    def test_takes_a_subclassed_model_in_bfloat16(self):
        class Plain(keras.Model):
            def call(self, x):
                return ops.one_hot(ops.cast(x[:, 0], "int32"), 3, dtype="bfloat16")

        found = scale_generalization(Plain(), sized(1))
        np.testing.assert_array_equal(found.accuracies, [1.0])


@pytest.mark.seen_on_tensorflow("data are looked at by NumPy")
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
            ({1: (images(1.0)[0], [[2, -1, 0]] * 7)}, r"sum one. .*\[ 2. -1.  0.\]"),
            ({1: (images(1.0)[0], [[1, 1, 0]] * 7)}, r"sum one. .*\[1. 1. 0.\]"),
            ({1: (images(1.0)[0], np.zeros((7, 2)))}, r"Received: shape \(7, 2\)"),
            ({1: (images(1.0)[0], np.full(7, 3))}, r"the 3 classes .* \[3\]"),
            ({1: (images(1.0)[0], np.full(7, 0.5))}, r"the 3 classes .* \[0\.5\]"),
            ({1: (images(1.0)[0], np.full(7, -1))}, r"the 3 classes .* \[-1\]"),
            ({1: [images(1.0)[0]]}, "images and labels"),
            ({1: (images(1.0)[0], ["a"] * 7)}, "number their names.*such as 'a'"),
            ({1: (images(1.0)[0][:, :1], [0] * 7)}, r"\(None, 2\).*shape \(7, 1\)"),
        ],
    )
    def test_unusable_data(self, datasets, message):
        with pytest.raises(ValueError, match=message):
            scale_generalization(network(), datasets)

    @pytest.mark.parametrize(
        ("found", "message"),
        [
            (images(1.0)[0].astype("uint8"), r"by 255.*uint8.*if the model itself"),
            (255 * images(1.0)[0], r"by 255.*values up to.*if the model itself"),
        ],
    )
    def test_images_of_8_bits(self, found, message):
        with pytest.warns(UserWarning, match=message):
            scale_generalization(network(), {1: (found, [0] * 7)})

    def test_endless_data(self):
        tf = pytest.importorskip("tensorflow")
        data = tf.data.Dataset.from_tensors(images(1.0)).repeat()
        with pytest.raises(ValueError, match=r"size factor 1: .* without end"):
            scale_generalization(network(), {1: data})

    def test_scores_that_are_not_finite(self):
        diverged = network(after=lambda scores: scores * float("nan"))
        with pytest.raises(ValueError, match="not all finite"):
            scale_generalization(diverged, sized(1.0))

    def test_model_of_maps(self):
        image = keras.Input((2,))
        model = keras.Model(image, keras.layers.Reshape((1, 2))(image))
        with pytest.raises(ValueError, match=r"Received: an output of shape \(7, 1, 2"):
            scale_generalization(model, sized(1.0))
