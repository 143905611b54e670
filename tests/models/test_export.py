"""Exported networks, each in its own runtime, against the model on the same images."""

import re
from pathlib import Path

import keras
import numpy as np
import pytest

from keras_gdrn.kernels import axis_factors
from keras_gdrn.layers import GaussDerConv
from keras_gdrn.models import (
    Preprocess,
    gauss_der_resnet,
    with_input_shape,
    with_preprocess,
)
from tests.layers._contract import randomize

pytestmark = [
    pytest.mark.skipif(keras.backend.backend() != "tensorflow", reason="its formats"),
    # Keras asks NumPy for a name that it has no more.
    pytest.mark.filterwarnings("ignore:In the future .np.object.:FutureWarning"),
]

PAGE = Path(__file__).resolve().parents[2] / "docs" / "export.md"
SHAPE, OTHER = (12, 10, 3), (9, 14, 3)


def network():
    """Of two convolutions, at two scales, to a tolerance that cannot be seen here."""
    exact = {"epsilon": 1e-6, "tolerance": "exact"}
    model = gauss_der_resnet(SHAPE, 5, [4], 1.2, [0.8, 1.6], order=1, **exact)
    randomize(model)
    return with_preprocess(model, Preprocess())


def images(batch, shape=SHAPE):
    return np.random.default_rng(batch).random((batch, *shape)).astype("float32")


def saved_model(path):
    import tensorflow as tf

    loaded = tf.saved_model.load(path)
    return lambda x: loaded.serve(x).numpy()


def onnx(path):
    import onnxruntime

    session = onnxruntime.InferenceSession(path)
    (source,) = session.get_inputs()
    return lambda x: session.run(None, {source.name: x})[0]


def litert(path):
    from ai_edge_litert.interpreter import Interpreter

    interpreter = Interpreter(model_path=str(path))
    (source,) = interpreter.get_input_details()
    (target,) = interpreter.get_output_details()

    def run(x):
        interpreter.resize_tensor_input(source["index"], x.shape, strict=True)
        interpreter.allocate_tensors()
        interpreter.set_tensor(source["index"], x)
        interpreter.invoke()
        return interpreter.get_tensor(target["index"])

    return run


# What the page calls the files, how each is loaded, what it says to images of other
# sizes.
EXPORTED = [
    ("exported", saved_model, "Can not cast TensorSpec"),
    ("exported.onnx", onnx, "Got: 9 Expected: 12"),
    ("exported.tflite", litert, "Attempting to resize dimension 1"),
]
of_other_runtimes = pytest.mark.parametrize(
    ("kind", "path", "load"),
    [("onnx", "any.onnx", onnx), ("litert", "any.tflite", litert)],
)


@pytest.fixture
def folder(tmp_path, monkeypatch):
    for package in ("onnx", "tf2onnx", "onnxruntime", "ai_edge_litert"):
        pytest.importorskip(package)
    monkeypatch.chdir(tmp_path)
    return tmp_path


def assert_same(run, model, x):
    expected = keras.ops.convert_to_numpy(model(x))
    assert np.ptp(expected) > 0.1
    np.testing.assert_allclose(run(x), expected, rtol=1e-4, atol=1e-5)


def assert_any_size(run, model):
    for batch, shape in [(1, SHAPE), (3, SHAPE), (2, OTHER)]:
        assert_same(run, with_input_shape(model, shape), images(batch, shape))


def test_the_examples_of_the_page(folder):
    model = network()
    (folder / "runs/own_data").mkdir(parents=True)  # where a training leaves it
    model.save("runs/own_data/model.keras")
    names, answers = {"keras": keras, "np": np, "images": images(2)}, []
    blocks = re.findall(r"```python\n(.*?)```", PAGE.read_text("utf-8"), re.DOTALL)
    for block in blocks:
        exec(block, names)
        if "scores" in names:
            answers.append(np.asarray(names.pop("scores")))
    assert len(answers) == 3
    for answer in answers:
        assert_same(lambda x, y=answer: y, model, images(2))
    for path, load, refusal in EXPORTED:
        run = load(path)
        for x in (images(1), images(3)):
            assert_same(run, model, x)
            np.testing.assert_allclose(run(255 * x), run(x), rtol=1e-4, atol=1e-5)
            assert np.isnan(run(2 * x - 1)).all()
        with pytest.raises(Exception, match=refusal):
            run(images(1, OTHER))
    assert_any_size(saved_model("any_size"), model)
    assert [output.shape[1:] for output in names["both"].outputs] == [(2, 5), (5,)]
    assert Path("with_scales").is_dir()


@of_other_runtimes
def test_unknown_size(kind, path, load, folder):
    model = network()
    free = with_input_shape(model, (None, None, 3))
    free(images(1))  # ONNX wants a model that has been called
    free.export(folder / path, format=kind, verbose=False)
    assert_any_size(load(folder / path), model)


@of_other_runtimes
def test_whole_maps_of_any_batch(kind, path, load, folder):
    """Narrow kernels slide over them, along the second axis with few channels."""
    shape = (60, 48, 3)
    model = keras.Sequential([keras.Input(shape), GaussDerConv(4, 0.6, epsilon=1e-2)])
    assert axis_factors(48, 0.6, 2, "zero", 1e-2).composed
    randomize(model.layers[0])
    model(images(1, shape))
    model.export(folder / path, format=kind, verbose=False)
    for batch in (1, 3):
        assert_same(load(folder / path), model, images(batch, shape))
