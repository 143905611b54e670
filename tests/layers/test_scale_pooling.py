"""`ScalePooling`: contract, the three formulas, and the statistics of the dropout."""

import numpy as np
import pytest
from keras import ops
from scipy.special import logsumexp

from keras_gdrn.layers import ScalePooling
from tests._cases import cases
from tests._gradients import gradients
from tests.layers._contract import WEIGHTLESS, Case, drawn, each

MODES = {
    "max": lambda x: np.max(x, axis=1),
    "logsumexp": lambda x: logsumexp(x, axis=1),
    "average": lambda x: np.mean(x, axis=1),
}
each_mode = pytest.mark.parametrize("mode", cases(MODES, ["logsumexp"]))


def pooling(*args, **fixed):
    return lambda **kwargs: ScalePooling(*args, **{**fixed, **kwargs})


CASES = {
    "logsumexp": Case(pooling("logsumexp"), (4, 5), unknown=(4, None)),
    "maps": Case(pooling("max"), (2, 3, 4, 5), unknown=(2, None, None, 5)),
    "dropout": Case(pooling("average", dropout=0.3, seed=1), (4, 5), unknown=(4, None)),
}


@each(CASES, on_jax=("logsumexp", "dropout"), checks=WEIGHTLESS)
def test_contract(case, check):
    check(case)


def assert_close(actual, expected):
    actual = ops.convert_to_numpy(actual)
    np.testing.assert_allclose(actual, expected, rtol=1e-5, atol=1e-6)


@each_mode
def test_is_the_formula_and_dropout_is_off_in_inference(mode):
    plain, dropping = ScalePooling(mode), ScalePooling(mode, dropout=0.5)
    for shape in ((3, 6, 10), (3, 1, 10), (0, 6, 10), (2, 3, 4, 5, 6)):
        x = drawn(*shape)
        expected = MODES[mode](x)
        assert_close(plain(x), expected)
        assert_close(plain(x, training=True), expected)
        assert_close(dropping(x), expected)
        assert_close(dropping(x, training=False), expected)
        assert dropping(x, training=True).shape == expected.shape


def test_the_seed_is_an_integer_of_any_kind():
    assert ScalePooling(dropout=0.3, seed=np.int64(3)).get_config()["seed"] == 3
    for seed in (2.7, "a", -1):
        with pytest.raises(ValueError, match=f"`seed` must be .*seed={seed!r}"):
            ScalePooling(seed=seed)


# Dropout. Averaging one-hot channels shows which were kept: 1/N each.


def kept_channels(layer, batch=20_000, scales=6) -> np.ndarray:
    one_hot = np.broadcast_to(np.eye(scales, dtype="float32"), (batch, scales, scales))
    shares = ops.convert_to_numpy(layer(one_hot, training=True))
    kept = shares > 0
    assert_close(shares, kept / kept.sum(axis=1, keepdims=True))
    return kept


@pytest.mark.parametrize("rate", cases([0.05, 0.3, 0.8, 0.99], [0.3]))
def test_each_channel_is_dropped_with_the_rate(rate):
    kept = kept_channels(ScalePooling("average", dropout=rate, seed=3))
    # All six would be dropped with rate**6: then one of them stays, none by preference.
    expected = rate - rate**6 / 6
    tolerance = 4.5 * np.sqrt(expected * (1 - expected) / len(kept))
    np.testing.assert_allclose(1 - kept.mean(axis=0), expected, atol=tolerance)
    # Independently of one another, where rate**6 is negligible.
    if rate < 0.5:
        correlation = np.corrcoef(kept.T) - np.eye(6)
        assert np.abs(correlation).max() < 4.5 / np.sqrt(len(kept))


@each_mode
def test_dropped_channels_are_left_out_and_get_no_gradient(mode):
    """Of maps whole channels, also if they are infinite."""
    x, upstream = drawn(200, 4, 3, 2) - 100, np.ones((200, 3, 2), "float32")
    # The same seed draws the same channels for every mode.
    kept = kept_channels(ScalePooling("average", dropout=0.6, seed=5), 200, 4)
    expected = [MODES[mode](x[i : i + 1, k])[0] for i, k in enumerate(kept)]
    for _ in range(2):
        layer = ScalePooling(mode, dropout=0.6, seed=5)
        assert_close(layer(x, training=True), expected)
        layer = ScalePooling(mode, dropout=0.6, seed=5)
        (gradient,) = gradients(layer, x, upstream, training=True)
        assert np.isfinite(gradient).all()
        assert not np.any(gradient[~kept])
        assert_close(gradient.sum(axis=1), upstream)
        x[~kept] = np.inf
