"""Basis kernels and effective filters, against SciPy's responses to a bright pixel."""

import keras
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from keras_gdrn.layers import GaussDerConv
from keras_gdrn.models import scale_channel
from keras_gdrn.visualization import basis_kernels, effective_filters
from tests import _reference
from tests._cases import cases
from tests._drawn import examples
from tests.layers._contract import randomize

RADIUS = 30  # that of no filter here is as large


def built(sigma=1.5, shape=(None, None, 2), **options):
    layer = GaussDerConv(3, sigma, data_format="channels_last", **options)
    layer.build((None, *shape))
    randomize(layer)
    return layer


def response(alpha, sigma):
    """By SciPy: `σ^|α| δ^α T(·; σ)`."""
    pixel = np.zeros((2 * RADIUS + 1,) * 2)
    pixel[RADIUS, RADIUS] = 1
    for axis, order in enumerate(alpha):
        pixel = _reference.derivative(pixel, sigma, order, axis, "zero")
    return pixel


def float64(weight):
    return np.asarray(keras.ops.convert_to_numpy(weight)).astype("float64")


@examples(cases(20, 3))
@given(
    order=st.integers(1, 4),
    separable=st.booleans(),
    zero_order=st.booleans(),
    trained=st.one_of(st.none(), st.floats(0.5, 1.5)),
    sigma=st.floats(0.5, 1.5),
    sigma0=st.floats(0.5, 1.5),
    epsilon=st.sampled_from([1e-3, 1e-5]),
    dtype=st.sampled_from(["float32", "bfloat16"]),
)
def test_effective_filters_are_those_of_scipy(sigma, sigma0, trained, **options):
    """The weights as they are; but nothing that is computed from them is rounded."""
    layer = built(sigma, trainable_sigma=trained is not None, **options)
    if trained:
        layer.log_sigma.assign(np.log(trained))
        sigma = np.exp(float64(layer.log_sigma))
    kernel = float64(layer.depthwise_kernel if layer.separable else layer.kernel)
    expected = 0.0
    for alpha, mix in zip(layer.indices, kernel, strict=True):
        of_alpha = _reference.orderings(alpha) * response(alpha, sigma * sigma0)
        expected = expected + np.multiply.outer(of_alpha, mix)
    found, largest = effective_filters(layer, sigma0), np.abs(expected).max()
    inside = (slice(RADIUS - len(found) // 2, RADIUS + len(found) // 2 + 1),) * 2
    assert found.shape == expected[inside].shape and found.dtype == np.float64
    np.testing.assert_allclose(found, expected[inside], atol=1e-12 * largest)
    expected[inside] = 0
    assert layer.order > 2 or np.abs(expected).max() < 10 * layer.epsilon * largest


def test_basis_kernels_are_those_of_the_papers_figure_in_its_order():
    assert basis_kernels(1.0, order=3)[0, 0].shape == (11, 11)
    assert basis_kernels(4.0, order=3)[3, 0].shape == (33, 33)
    basis = basis_kernels(2.0, radius=RADIUS)
    assert list(basis) == [(0, 0), (0, 1), (1, 0), (0, 2), (1, 1), (2, 0)]
    for alpha, kernel in basis.items():
        np.testing.assert_allclose(kernel, response(alpha, 2.0), atol=1e-12)


def test_layers_of_a_network_are_found_by_name():
    channel = scale_channel((9, 9, 3), 10, [4, 6], 1.2, separable_blocks=1)
    block, stem, head = map(channel.get_layer, ("block1", "stem_conv", "head"))
    layers = stem, head, block.conv1, block.conv2
    sizes = [effective_filters(layer).shape for layer in layers]
    assert sizes == [(11, 11, 3, 4), (15, 15, 6, 10), (13, 13, 4), (13, 13, 6)]


@pytest.mark.parametrize(
    ("function", "given", "message"),
    [
        (effective_filters, (keras.layers.Conv2D(3, 5),), "`conv1` .* layer=<Conv2D"),
        (effective_filters, (GaussDerConv(3, 1.0),), "built for inputs of two .* None"),
        (effective_filters, (built(shape=(20, 2)),), r"two spatial .*\(ndim=3"),
        (effective_filters, (built(), 0.0), "`sigma0` .* sigma0=0"),
        (effective_filters, (built(), np.nan), "`sigma0` .* sigma0=nan"),
        (basis_kernels, (-1.0,), r"`sigma` .* sigma=-1\.0"),
        (basis_kernels, (1.0, -1), "`order` .* order=-1"),
    ],
)
def test_what_has_no_filters_is_refused(function, given, message):
    with pytest.raises(ValueError, match=message):
        function(*given)
