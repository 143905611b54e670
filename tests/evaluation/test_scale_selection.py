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
from keras_gdrn.models import with_sigma0
from tests.evaluation._known import (
    CLASSES,
    SIGMA0,
    KnowsItsScale,
    X,
    Y,
    images,
    network,
    sized,
)

SOFTMAX = np.exp([-1.0, 0.0, -1.0]) / np.exp([-1.0, 0.0, -1.0]).sum()


@pytest.mark.parametrize(
    ("pooling", "after", "sizes", "expected"),
    [
        ("max", None, (2.0, 0.5, 1.0), np.eye(3)),
        ("logsumexp", None, (1.0,), [SOFTMAX]),
        ("logsumexp", keras.layers.Softmax(), (1.0,), [SOFTMAX]),
        ("average", None, (0.5,), [[10 / 27, 9 / 27, 8 / 27]]),
    ],
)
def test_channels_share_as_the_pooling_does(pooling, after, sizes, expected):
    found = scale_selection_histogram(network(pooling, after), sized(*sizes))
    np.testing.assert_array_equal(found.factors, sorted(sizes))
    np.testing.assert_allclose(found.sigma0, SIGMA0)
    np.testing.assert_allclose(found.shares, expected, rtol=1e-5)


def test_shares_are_those_of_predicted_classes_not_of_labels_in_one_pass():
    x = np.concatenate([images(0.5, 3)[0], images(2.0, 1)[0]])
    wrong = (x[:, 0] + 1) % CLASSES
    once = iter([(x[:2], wrong[:2]), (x[2:], wrong[2:])])
    found = scale_selection_histogram(network(), {1: once})
    np.testing.assert_array_equal(found.shares, [[0.75, 0.0, 0.25]])
    np.testing.assert_array_equal(found.accuracies, [0])


@pytest.mark.seen_on_tensorflow("models are looked at by Python")
def test_leaves_the_model_as_it_was_also_if_it_shares_layers():
    model = network(dropout=0.5)
    fewer = with_sigma0(model, [2.0, 0.5])
    for _ in "ab":
        found = scale_selection_histogram(fewer, sized(0.5, 2.0))
        np.testing.assert_array_equal(found.sigma0, [2.0, 0.5])
        np.testing.assert_array_equal(found.shares, [[0, 1], [1, 0]])
    # A layer that was called a second time would have no one output.
    assert all(layer.output is not None for layer in model.layers)


@pytest.mark.seen_on_tensorflow("models are looked at by Python")
def test_uses_the_weights_of_other_layers():
    image = keras.Input((2,))
    double_size = keras.layers.Dense(2, use_bias=False)
    x = ScaleChannels(KnowsItsScale(), SIGMA0, density=None)(double_size(image))
    model = keras.Model(image, ScalePooling()(x))
    double_size.set_weights([np.diag([1.0, 2.0])])
    found = scale_selection_histogram(model, sized(1.0))
    np.testing.assert_array_equal(found.shares, [[0, 0, 1]])


def test_labels_may_be_missing_but_then_all_of_them():
    unlabeled, both = {1: [X], 2: [(X,)], 3: [(X, None)]}, [(X, Y), (X, None)]
    found = scale_selection_histogram(network(), unlabeled)
    np.testing.assert_array_equal(found.shares, [[0, 1, 0]] * 3)
    assert found.accuracies is None
    with pytest.raises(ValueError, match="must be batches of images and labels"):
        scale_generalization(network(), unlabeled)
    with pytest.raises(ValueError, match=r"size factor 1: .* or none of them"):
        scale_selection_histogram(network(), {1: both})
    for first, second in (both, both[::-1]):
        later = iter([second, second])
        with pytest.raises(ValueError, match=r"size factor 2: .* or none of them"):
            scale_selection_histogram(network(), {1: [first], 2: later})
        assert len(list(later)) == 1  # the first of its batches tells


@pytest.mark.seen_on_tensorflow("models are looked at by Python")
def test_models_of_another_kind():
    image = keras.Input((2,))
    x = ScaleChannels(KnowsItsScale(), SIGMA0, density=None)(image)
    for model, message in (
        (keras.Model(image, keras.layers.Dense(3)(image)), "`ScaleChannels`.* 0"),
        (keras.Model(image, keras.layers.Flatten()(x)), "one `ScalePooling`.* 0"),
        (network(after=keras.layers.Dense(4)), r"the output \(None, 4\)"),
    ):
        with pytest.raises(ValueError, match=message):
            scale_selection_histogram(model, sized(1.0))


@pytest.mark.seen_on_tensorflow("computed by NumPy")
@pytest.mark.parametrize(
    ("scores", "pooling", "expected"),
    [
        ([2.0, 2.0, 1.0, 2.0], "max", [1 / 3, 1 / 3, 0, 1 / 3]),
        *(([0] * 4, mode, [0.25] * 4) for mode in ("max", "average", "logsumexp")),
        ([1e4, 1e4 + 1], "logsumexp", np.array([1, np.e]) / (1 + np.e)),
        ([1.0, 3.0], "average", [0.25, 0.75]),
    ],
)
def test_scale_shares(scores, pooling, expected):
    np.testing.assert_allclose(scale_shares(np.array([scores]), pooling), [expected])


@pytest.mark.seen_on_tensorflow("computed by NumPy")
@pytest.mark.parametrize(
    ("pooling", "message"),
    [("average", r"be >= 0 .* a score of -1"), ("median", "pooling='median'")],
)
def test_shares_are_refused(pooling, message):
    with pytest.raises(ValueError, match=message):
        scale_shares(np.array([[-1.0, 2.0]]), pooling)
