"""Accuracies of networks whose answers are known, by each way to them."""

import warnings

import keras
import numpy as np
import pytest
from keras import ops

from keras_gdrn.evaluation import scale_generalization, scale_selection_histogram
from keras_gdrn.models import Preprocess, with_preprocess
from tests.evaluation._known import CLASSES, X, Y, images, network, sized

each_way = pytest.mark.parametrize(
    "evaluate", [scale_generalization, scale_selection_histogram]
)
ONE_HOT = np.eye(CLASSES)[Y]


@each_way
@pytest.mark.parametrize("size", [1, 3, 8, 100])
def test_counts_each_image_once_whatever_the_batches_by_factor(evaluate, size):
    x, y = images(1.0, count=8)
    wrong = np.where(np.arange(8) < 2, (y + 1) % CLASSES, y)
    model = network("average", keras.layers.Softmax(), dropout=0.5)
    found = evaluate(model, {2: (x, y), 0.5: (x, wrong)}, batch_size=size)
    np.testing.assert_array_equal(found.factors, [0.5, 2.0])
    np.testing.assert_array_equal(found.accuracies, [0.75, 1.0])


@each_way
def test_takes_all_kinds_of_labels_and_of_data(evaluate):
    tf = pytest.importorskip("tensorflow")

    class Pairs(keras.utils.PyDataset):
        num_batches = 2

        def __getitem__(self, index):
            part = slice(4 * index, 4 * index + 4)
            return X[part], Y[part]

    kinds = [(X, Y), (X, Y[:, None]), (X, Y.astype("float32"))]
    kinds += [(X, ONE_HOT), (X, 0.9 * ONE_HOT + 0.1 / CLASSES)]
    kinds += [tf.data.Dataset.from_tensor_slices((X, Y)).batch(4), Pairs()]
    kinds += [iter([(X, Y)]), [(X[:4], Y[:4]), [X[4:], Y[4:], np.ones(3)]]]
    found = evaluate(network(), dict(enumerate(kinds, 1)))
    np.testing.assert_array_equal(found.accuracies, np.ones(len(kinds)))


def test_takes_a_subclassed_model_of_two_classes_in_bfloat16():
    class Plain(keras.Model):
        def call(self, x):
            return ops.one_hot(ops.cast(x[:, 0] > 0, "int32"), 2, dtype="bfloat16")

    found = scale_generalization(Plain(), {1: (X, np.minimum(Y, 1))})
    np.testing.assert_array_equal(found.accuracies, [1.0])


@pytest.mark.seen_on_tensorflow("data are looked at by NumPy")
@each_way
@pytest.mark.parametrize(
    ("datasets", "message"),
    [
        ({}, "`datasets` must map"),
        ([(X, Y)], "`datasets` must map"),
        ({0.0: (X, Y)}, "positive, finite size factors. Received: 0.0"),
        ({"1": (X, Y)}, "size factors. Received: '1'"),
        ({1: []}, "At size factor 1: the data are empty"),
        ({1: images(1.0, count=0)}, "At size factor 1: the data are empty"),
        ({2: "digits"}, "At size factor 2: the data must be a pair"),
        ({1: (X, Y, Y)}, "a pair .* Received: tuple of 3 arrays"),
        ({1: [X[0]]}, r"batches of shape \(None, 2\)"),
        ({1: (X[:, :1], Y)}, r"\(None, 2\).*shape \(7, 1\)"),
        ({1: (X, Y[:6])}, r"as many labels .* \(7, 2\) and"),
        ({1: [(X, Y[:6])]}, r"as many labels as images, 7\. .*\(6,\)"),
        ({1: (X, [[2, -1, 0]] * 7)}, r"One-hot .*\[ 2. -1.  0.\]"),
        ({1: (X, [[1, 1, 0]] * 7)}, r"One-hot .*\[1. 1. 0.\]"),
        ({1: (X, np.zeros((7, 2)))}, r"Received: labels of shape \(7, 2\)"),
        ({1: (X, np.full(7, 3))}, r"the 3 classes .*\[3\b"),
        ({1: (X, np.full(7, 0.5))}, r"the 3 classes .*\[0\.5\b"),
        ({1: (X, np.full(7, -1))}, r"the 3 classes .*\[-1\b"),
        ({1: (X, ["a"] * 7)}, r"number their names.*\['a'\]"),
    ],
)
def test_unusable_data(evaluate, datasets, message):
    with pytest.raises(ValueError, match=message):
        evaluate(network(), datasets)


@pytest.mark.seen_on_tensorflow("data are looked at by NumPy")
@each_way
def test_images_of_8_bits_and_endless_data(evaluate):
    message = r"by 255.*(uint8|values up to).*if the model itself"
    for found in (X.astype("uint8"), 255 * X):
        with pytest.warns(UserWarning, match=message):
            evaluate(network(), {1: (found, Y)})
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            bytes_too = with_preprocess(network(), Preprocess())
            evaluate(bytes_too, {1: (X.astype("uint8"), Y)})
    tf = pytest.importorskip("tensorflow")
    data = tf.data.Dataset.from_tensors((X, Y)).repeat()
    with pytest.raises(ValueError, match=r"size factor 1: .* without end"):
        evaluate(network(), {1: data})


@pytest.mark.seen_on_tensorflow("scores are looked at by NumPy")
@pytest.mark.parametrize(
    ("after", "message"),
    [
        (lambda scores: scores * float("nan"), "must be finite"),
        (keras.layers.Reshape((1, 3)), r"Received: an output of shape \(7, 1, 3"),
        (lambda scores: scores[:, :1], r"two or more classes. .*shape \(7, 1\)"),
    ],
)
def test_what_are_no_scores(after, message):
    with pytest.raises(ValueError, match=message):
        scale_generalization(network(after=after), sized(1.0))
