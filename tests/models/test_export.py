"""Exported networks, each in its own runtime, against the model on the same images."""

from pathlib import Path

import keras
import numpy as np
import pytest

from keras_gdrn.layers import GaussDerConv, ScaleChannels
from keras_gdrn.models import (
    Preprocess,
    gauss_der_resnet,
    scale_channel,
    with_input_shape,
    with_preprocess,
)
from tests._pages import code
from tests.layers._contract import randomize

pytestmark = [
    pytest.mark.skipif(keras.backend.backend() != "tensorflow", reason="its formats"),
    # Keras asks NumPy for a name that it has no more.
    pytest.mark.filterwarnings("ignore:In the future .np.object.:FutureWarning"),
]

SHAPE, OTHER = (12, 10, 3), (9, 14, 3)


def network():
    """Of two convolutions, at two scales."""
    model = gauss_der_resnet(SHAPE, 5, [4], 1.2, [0.8, 1.6], order=1)
    randomize(model)
    return with_preprocess(model, Preprocess())


def images(batch, shape=SHAPE):
    return np.random.default_rng(batch).random((batch, *shape)).astype("float32")


# The page makes files, and has each loaded by its own runtime.
EXPORT, ANY_SIZE, INT8, SAVED_MODEL, ONNX, LITERT, WITH_SCALES = code("docs/export")


def run(block, file):
    """A function from images to the scores that a block finds by another file."""

    def scores(x):
        names = {"images": x}
        exec(block.replace("exported", file), names)
        return np.asarray(names["scores"])

    return scores


of_other_runtimes = pytest.mark.parametrize(
    ("kind", "file", "block"),
    [("onnx", "any.onnx", ONNX), ("litert", "any.tflite", LITERT)],
    ids=["onnx", "litert"],
)


@pytest.fixture
def folder(tmp_path, monkeypatch):
    for package in ("onnx", "tf2onnx", "onnxruntime", "ai_edge_litert"):
        pytest.importorskip(package)
    monkeypatch.chdir(tmp_path)
    return tmp_path


def assert_same(scores, model, x):
    expected = keras.ops.convert_to_numpy(model(x))
    assert np.ptp(expected) > 0.1
    np.testing.assert_allclose(scores(x), expected, rtol=1e-4, atol=1e-5)


def assert_any_size(scores, model):
    for batch, shape in [(1, SHAPE), (3, SHAPE), (2, OTHER)]:
        assert_same(scores, with_input_shape(model, shape), images(batch, shape))


@pytest.mark.slow
def test_the_examples_of_the_page(folder):
    model = network()
    (folder / "runs/own_data").mkdir(parents=True)  # where a training leaves it
    model.save("runs/own_data/model.keras")
    names = {"keras": keras, "np": np}
    for block in (EXPORT, ANY_SIZE, WITH_SCALES):
        exec(block, names)
    for block, refusal in (
        (SAVED_MODEL, "Can not cast TensorSpec"),
        (ONNX, "Got: 9 Expected: 12"),
        (LITERT, "Attempting to resize dimension 1"),
    ):
        scores = run(block, "exported")
        for x in (images(1), images(3)):
            assert_same(scores, model, x)
            np.testing.assert_allclose(scores(255 * x), scores(x), rtol=1e-4, atol=1e-5)
            assert np.isnan(scores(2 * x - 1)).all()
        with pytest.raises(Exception, match=refusal):
            scores(images(1, OTHER))
    assert_any_size(run(SAVED_MODEL, "any_size"), model)
    assert [output.shape[1:] for output in names["both"].outputs] == [(2, 5), (5,)]
    assert Path("with_scales").is_dir()


@of_other_runtimes
def test_unknown_size(kind, file, block, folder):
    model = network()
    free = with_input_shape(model, (None, None, 3))
    free(images(1))  # ONNX wants a model that has been called
    free.export(file, format=kind, verbose=False)
    assert_any_size(run(block, "any"), model)


def test_int8(folder):
    model = network()
    model.export("exported", verbose=False)
    for white in (1, 255):
        x = np.round(images(20) * white) if white > 1 else images(20)
        exec(INT8, {"images": x})
        expected = model.predict(x, verbose=0)
        error = run(LITERT, "int8")(x) - expected
        assert 0 < np.abs(error).max() <= 0.1 * np.abs(expected).max()


@of_other_runtimes
def test_whole_maps_of_any_batch(kind, file, block, folder):
    shape = (60, 48, 3)
    model = keras.Sequential([keras.Input(shape), GaussDerConv(4, 0.6, epsilon=1e-2)])
    randomize(model.layers[0])
    model(images(1, shape))
    model.export(file, format=kind, verbose=False)
    for batch in (1, 3):
        assert_same(run(block, "any"), model, images(batch, shape))


def network_of(*widths, **options):
    """A network at two scales, on grids."""
    return lambda shape: gauss_der_resnet(shape, 4, widths, 1.3, [0.7, 1.0], **options)


def maps(shape):
    image = keras.Input(shape)
    channel = keras.Model(image, GaussDerConv(4, 1.0)(image))
    return ScaleChannels(channel, [0.7, 1.4])


# Layers outside of `ScaleChannels`, with operators as constants or made in the graph,
# and networks.
KINDS = {
    "maximum": network_of(4, 6, spatial_selection="max"),
    "learned network": network_of(4, 6, trainable_sigma=True),
    "third order": network_of(6, 8, order=3, zero_order=True),
    "maps": maps,
    "volumes": network_of(4),
    "fine": lambda shape: GaussDerConv(4, 1.0),
    "coarse": lambda shape: GaussDerConv(4, 4.0),
    "separable": lambda shape: GaussDerConv(4, 1.0, separable=True),
    "learned": lambda shape: GaussDerConv(4, 1.0, trainable_sigma=True),
    "channel": lambda shape: scale_channel(shape, 4, [4, 6], 2.0),
}


IMAGE, LINE, VOLUME = (24, 20, 2), (24, 2), (8, 9, 10, 2)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("layer", "shape"),
    [
        ("fine", LINE),
        ("coarse", IMAGE),
        ("separable", IMAGE),
        ("learned", IMAGE),
        ("channel", IMAGE),
        ("maximum", IMAGE),
        ("learned network", IMAGE),
        ("third order", LINE),
        ("maps", IMAGE),
        ("volumes", VOLUME),
    ],
)
def test_each_layer_in_each_format(layer, shape, folder):
    image = keras.Input(shape)
    model = keras.Model(image, KINDS[layer](shape)(image))
    randomize(model)
    model(images(1, shape))
    model.export("any.onnx", format="onnx", verbose=False)
    model.export("any.tflite", format="litert", verbose=False)
    model.export("any", verbose=False)
    for block in (ONNX, LITERT, SAVED_MODEL):
        for batch in (1, 3):
            assert_same(run(block, "any"), model, images(batch, shape))
