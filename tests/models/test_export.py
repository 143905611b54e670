"""Exported networks, each in its own runtime, against the model on the same images."""

import json
import re
import zipfile
from pathlib import Path

import keras
import numpy as np
import pytest

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
    model = gauss_der_resnet(SHAPE, 5, [4], 1.2, [0.8, 1.6], order=1, epsilon=1e-6)
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


# What the file is called, how it is loaded, and what that needs.
FORMATS = {
    "tf_saved_model": ("network", saved_model, ()),
    "onnx": ("network.onnx", onnx, ("onnx", "tf2onnx", "onnxruntime")),
    "litert": ("network.tflite", litert, ("ai_edge_litert",)),
}
REFUSALS = {
    "tf_saved_model": "Can not cast TensorSpec",
    "onnx": "Got: 9 Expected: 12",
    "litert": "Attempting to resize dimension 1",
}


@pytest.fixture
def exported(tmp_path):
    """Exports a model and loads it again, without Keras."""

    def through(model, kind):
        name, load, packages = FORMATS[kind]
        for package in packages:
            pytest.importorskip(package)
        model(images(1))  # ONNX wants a model that has been called
        path = str(tmp_path / name)  # Keras 3.13 takes no `Path` for LiteRT
        model.export(path, format=kind, verbose=False)
        return load(path)

    return through


def assert_same(run, model, x):
    expected = keras.ops.convert_to_numpy(model(x))
    assert np.ptp(expected) > 0.1
    np.testing.assert_allclose(run(x), expected, rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("kind", FORMATS)
def test_known_size(kind, exported):
    model = network()
    run = exported(model, kind)
    for batch in (1, 3):
        assert_same(run, model, images(batch))
    with pytest.raises(Exception, match=REFUSALS[kind]):
        run(images(1, OTHER))


@pytest.mark.parametrize("kind", FORMATS)
def test_unknown_size(kind, exported):
    model = network()
    free = with_input_shape(model, (None, None, 3))
    run = exported(free, kind)
    for batch, shape in [(1, SHAPE), (3, SHAPE), (2, OTHER)]:
        assert_same(run, with_input_shape(model, shape), images(batch, shape))


def test_the_examples_of_the_page(tmp_path, monkeypatch):
    for package in ("onnx", "tf2onnx", "onnxruntime", "ai_edge_litert"):
        pytest.importorskip(package)
    monkeypatch.chdir(tmp_path)
    Path("runs/own_data").mkdir(parents=True)
    network().save("runs/own_data/model.keras")
    names = {"keras": keras, "np": np, "images": images(2)}
    answers = []
    blocks = re.findall(r"```python\n(.*?)```", PAGE.read_text("utf-8"), re.DOTALL)
    for block in blocks:
        exec(block, names)
        if "scores" in names:
            answers.append(np.asarray(names.pop("scores")))
    expected = names["model"].predict(names["images"], verbose=0)
    assert len(answers) == 3
    for answer in answers:
        np.testing.assert_allclose(answer, expected, rtol=1e-4, atol=1e-5)
    assert names["any_size"].input_shape == (None, None, None, 3)
    assert [output.shape[1:] for output in names["both"].outputs] == [(2, 5), (5,)]
    assert Path("any_size").is_dir() and Path("with_scales").is_dir()


def test_a_saved_network_holds_no_code(tmp_path):
    network().save(tmp_path / "network.keras")
    with zipfile.ZipFile(tmp_path / "network.keras") as file:
        assert set(file.namelist()) == {
            *("config.json", "metadata.json", "model.weights.h5")
        }
        config = file.read("config.json").decode()
    assert "Lambda" not in config and "__lambda__" not in config
    assert json.loads(config)["registered_name"] == "Functional"
    keras.saving.load_model(tmp_path / "network.keras", safe_mode=True)
