"""Choices of the package undone: what they change, and what they do not."""

import keras
import numpy as np
import pytest

from keras_gdrn.models import gauss_der_resnet, with_sigma0

SIGMA0 = (0.5, 1.0, 2.0)


@pytest.fixture
def variant(examples):
    from variants import variant

    return variant


@pytest.fixture
def model():
    keras.utils.set_random_seed(0)
    return gauss_der_resnet(
        (12, 12, 1), 3, [4, 4], 1.3, sigma0=SIGMA0, scale_dropout=0.5
    )


@pytest.fixture
def images():
    return np.random.default_rng(0).normal(size=(5, 12, 12, 1)).astype("float32")


def scores(model, images, **options):
    """Of each scale channel, before the pooling."""
    return np.asarray(model.layers[1](images, **options))


def test_it_has_the_weights_and_in_inference_the_function(variant, model, images):
    expected = model(images)
    for name in ("separate statistics", "dropout to zero"):
        other = variant(model, name)
        assert other.weights[0] is model.weights[0]
        np.testing.assert_allclose(other(images), expected, rtol=1e-5, atol=1e-6)
    assert variant(model, None) is model


def test_separate_statistics_are_those_of_one_channel_alone(variant, model, images):
    separate = scores(variant(model, "separate statistics"), images, training=True)
    joint = scores(model, images, training=True)
    for index, sigma0 in enumerate(SIGMA0):
        alone = scores(with_sigma0(model, [sigma0]), images, training=True)[:, 0]
        np.testing.assert_allclose(separate[:, index], alone, rtol=1e-4, atol=1e-5)
        assert np.abs(joint[:, index] - alone).max() > 1e-2


def test_a_channel_dropped_to_zero_wins_over_negative_scores(variant, model):
    negative = -np.ones((100, len(SIGMA0), 3), "float32")
    excluded = model.layers[-1](negative, training=True)
    np.testing.assert_array_equal(excluded, -1.0)
    zeros = variant(model, "dropout to zero").layers[-1](negative, training=True)
    # At 0.5, and one of three stays always: three of four samples lose one or more.
    assert 0.5 < np.mean(np.asarray(zeros) == 0.0) < 0.95


def test_under_max_pooling_zeros_change_nothing(variant, model):
    """No score of a network is negative: its last layer ends in a ReLU."""
    poolings = model.layers[-1], variant(model, "dropout to zero").layers[-1]
    positive = np.random.default_rng(0).random((100, len(SIGMA0), 3), "float32")
    results = []
    for pooling in poolings:
        pooling.seed_generator.state.assign([1, 2])
        results.append(np.asarray(pooling(positive, training=True)))
    np.testing.assert_array_equal(*results)
    assert (results[0] < positive.max(axis=1)).any()
