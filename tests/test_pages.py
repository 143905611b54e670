"""The examples of the pages run, and the numbers that they compute are right.

Only what takes long is made shorter.
"""

import dataclasses
import re
from unittest import mock

import keras
import numpy as np
import pytest
from PIL import Image

from keras_gdrn import data, training, tuning
from keras_gdrn.models import ARCHITECTURES, architecture, from_preset
from keras_gdrn.models._architectures import OF_THE_PAPER
from tests._pages import code, page

pytestmark = pytest.mark.usefixtures("step_by_step")


PLAIN, SEARCH, TRAINED = code("README")
*_, RECIPE, BUILD, TRAIN, _ = code("docs/keras_users")


def random_images(count, shape, classes=10):
    random = np.random.default_rng(count)
    images = random.random((count, *shape), dtype="float32")
    return images, random.integers(classes, size=count)


def with_images() -> dict:
    """The names of images that pages have not defined."""
    images, labels = random_images(32, (40, 40, 1))
    larger = random_images(8, (40, 40, 1))
    names = {"images": images, "labels": labels, "larger_or_smaller_images": larger[0]}
    return names | {"validation": larger, "twice_as_large": larger}


def test_readme_is_read_in_two_minutes():
    assert len(page("README").splitlines()) <= 110


@pytest.fixture
def few(monkeypatch, tmp_path):
    """Fewer images than the pages take, in a folder of their own."""

    def limited(*args, limit=None, **kwargs):
        return rescaled(*args, **kwargs, limit=None if limit is None else 8)

    rescaled = data.rescaled
    monkeypatch.setattr(data, "rescaled", limited)
    monkeypatch.chdir(tmp_path)


def short(text: str) -> str:
    """With one epoch, and one trial, of few images."""
    for pattern, brief in {
        r"epochs=\d+": "epochs=1",
        "max_trials=10": "max_trials=1",
        '"train", batch': '"train", limit=8, batch',
        r"skip\(20\)": "skip(24)",
    }.items():
        text = re.sub(pattern, brief, text)
    return text


@pytest.mark.usefixtures("few")
@pytest.mark.parametrize("search", [SEARCH, ""], ids=["readme", "tutorial"])
def test_plain_keras_and_a_search_of_ones_own(search):
    names = {}
    if not search:
        exec(short(code("docs/hyperparameters")[0]), names)
    else:
        assert len(PLAIN.splitlines()) <= 15
        exec(short(PLAIN), names)
        assert np.isfinite(names["model"].history.history["val_loss"]).all()
        assert names["model"].predict(names["larger"]).shape == (40, 10)
        exec(short(search), names)
    (trial,) = names["tuner"].oracle.get_best_trials(1)
    assert trial.status == "COMPLETED"
    assert {"ratio", "width", "pooling"} == {*trial.hyperparameters.values}


@pytest.mark.usefixtures("few")
def test_a_first_network():
    def few_arrays(*args, limit, **kwargs):
        return rescaled_arrays(*args, limit=8, **kwargs)

    rescaled_arrays = data.rescaled_arrays
    names = {}
    with mock.patch.object(data, "rescaled_arrays", few_arrays):
        for block in code("docs/first_network"):
            exec(
                short(block.replace('"train", batch', '"train", limit=8, batch')), names
            )
    assert names["six"].count_params() == names["one"].count_params()


def test_any_position():
    names = {}
    for block in code("docs/anywhere"):
        exec(block, names)
    assert names["model"].output_shape == (None, 10)


@pytest.mark.skipif(
    keras.backend.backend() != "tensorflow", reason="Grad-CAM by TensorFlow's tape"
)
def test_other_tasks():
    names = {}
    for block in code("docs/tasks"):
        exec(block, names)
        if "sigma0" in names and "model" in names:
            assert names["model"].input_shape == (None, 224, 224, 3)
    assert names["labels"].output_shape == (None, 5)
    assert names["values"].output_shape == (None, 1)
    assert [output.shape for output in names["outputs"]] == [(None, 5), (None, 1)]
    sizes = {name: level.shape[1:] for name, level in names["levels"].items()}
    assert sizes == {f"P{k}": (128 >> k, 128 >> k, 96) for k in range(4)}
    assert names["where"].shape == (6, 40, 40)
    assert names["heat"].shape == (1, 40, 40)
    assert float(np.max(names["heat"])) > 0


@pytest.mark.usefixtures("few")
def test_a_recipe_for_plain_keras():
    names = {"keras": keras}
    exec(short(RECIPE.replace('("digits")', '("digits", widths=(4,))')), names)
    assert len(names["model"].history.epoch) == 1


def test_several_devices(tmp_path, monkeypatch):
    """That on JAX needs a process of its own: see tests/training/_distribution.py."""
    by_fit, on_tensorflow, *_ = code("docs/devices")
    names = dict(zip(("images", "labels"), random_images(8, (40, 40, 1)), strict=True))
    exec(on_tensorflow.replace('("digits")', '("digits", widths=(4,))'), names)
    assert len(names["model"].history.epoch) == 1
    monkeypatch.chdir(tmp_path)
    name = "rescaled_cifar10"
    brief = training.Recipe(1, 2)
    monkeypatch.setattr(training, "RECIPES", {name: brief})
    names = {"data": random_images(2, (64, 64, 3))}
    small = f'("{name}", widths=(4, 4), sigma0=(1.0,))'
    exec(by_fit.replace(f'architecture("{name}")', f"architecture{small}"), names)
    assert (tmp_path / "runs/cifar10").is_dir()


def test_the_functional_model():
    names = {}
    exec(BUILD, names)
    model = names["model"]
    model.compile("adam", keras.losses.SparseCategoricalCrossentropy(from_logits=True))
    history = model.fit(*random_images(2, (64, 64, 3)), verbose=0).history
    assert np.isfinite(history["loss"]).all()


def test_the_trained_network_recognizes_a_digit_at_three_sizes(capsys):
    images, labels = [], []
    for factor in (0.5, 1, 2):
        arrays = data.rescaled_arrays("digits", "test", factor, canvas=40, limit=1)
        images += list(arrays[0])
        labels += list(arrays[1])
    # Of images that the object fills at size factor 1.
    exec(TRAINED.replace("images)", "images, object_size=20)"), {"images": images})
    rows = capsys.readouterr().out.splitlines()
    assert [row.split()[0] for row in rows] == list(map(str, labels))
    sigma0 = [float(row.split()[-1]) for row in rows]
    assert sigma0[0] < sigma0[2]


def test_training_by_a_recipe(tmp_path, monkeypatch):
    name = "rescaled_cifar10"
    little = {"epochs": 1, "warmup_epochs": 0, "batch_size": 2}
    brief = dataclasses.replace(training.RECIPES[name], **little)
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(training, "RECIPES", {name: brief})
    narrow = TRAIN.replace(f'("{name}")', f'("{name}", widths=(4, 4), sigma0=[1.0])')

    def downloaded(*_, download=False, **__):
        assert download  # on a fresh machine there is nothing
        return random_images(4, (64, 64, 3))

    monkeypatch.setattr(data, "rescaled", downloaded)
    names = {}
    exec(narrow, names)
    result = names["scale_generalization"](names["model"], names["tests"])
    assert result.accuracies.shape == (9,)
    assert (tmp_path / "runs" / "cifar10" / "log.csv").exists()


@pytest.mark.slow
def test_a_search_in_three_lines(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    names: dict = {}
    small = {"stem_width": (4,), "width": (4,), "sigma0_range": (0.7, 1.0)}
    names["space"] = tuning.SearchSpace(blocks=(1,), **small)
    _, search, again, on_ray = code("docs/hyperparameters")
    search = search.replace("max_trials=20", "max_trials=1").replace("800", "968")
    search = search.replace("space = ", "given = ").replace("epochs=8", "epochs=1")
    exec(search, names)
    assert names["given"].width == (8, 16)
    (trial,) = names["tuner"].oracle.get_best_trials(1)
    assert trial.status == "COMPLETED"
    assert 0 <= trial.score <= 1
    with mock.patch.object(tuning, "search_on_ray", autospec=True):
        exec(on_ray, names)
    names |= {"images": names["images"][:32], "labels": names["labels"][:32]}
    exec(again.replace("epochs=40", "epochs=1"), names)
    assert names["model"].optimizer.iterations > 0


SHORT = [
    ("docs/keras_users", 0),
    ("docs/keras_users", 1),
    ("docs/keras_users", 5),
    ("docs/trained", 0),
    ("docs/how_a_layer_is_evaluated", 0),
    ("docs/data", 0),
    ("docs/data", 1),
    ("docs/data", 2),
    ("docs/results/mnist", 0),
    ("docs/results/cifar10", 0),
    ("docs/results/cifar10", 1),
]


@pytest.mark.parametrize(("name", "index"), SHORT)
def test_other_blocks_run(name, index, tmp_path, monkeypatch):
    """On a few random images, where a data set would be downloaded."""
    monkeypatch.chdir(tmp_path)
    for photo in ("cat.jpg", "ship.png"):
        image = (255 * random_images(1, (60, 50, 3))[0][0]).astype("uint8")
        Image.fromarray(image).save(photo)
    images = random_images(4, (48, 48, 3))
    monkeypatch.setattr(data, "rescaled", mock.Mock(return_value=images))
    monkeypatch.setattr(data, "mnist_scale", mock.Mock(return_value=images))
    names = {"keras": keras, "np": np, "images": images[0]}
    names |= {"from_preset": from_preset, "rescaled_arrays": data.rescaled_arrays}
    if "imresize" in code(name)[index]:
        monkeypatch.setattr(data, "rescaled_arrays", mock.Mock(return_value=images))
    names["model"] = architecture("digits", widths=(4,))
    text = code(name)[index].replace("canvas=56", "canvas=56, limit=4")
    exec(text.replace("(96, 96, 3)", "(48, 48, 3), density=0.7"), names)


def test_the_front_page():
    (text,) = code("docs/index")
    names = with_images()
    exec(text.replace("[1]), 6", "[1]), 1").replace("(model, 2", "(model, 1"), names)
    assert names["scores"].shape == (8, 10)


def test_a_pipeline_of_ones_own():
    layers = [keras.Input((24, 24, 1)), keras.layers.Flatten(), keras.layers.Dense(10)]
    names: dict = {"model": keras.Sequential(layers)}
    names["model"].compile("sgd", keras.losses.SparseCategoricalCrossentropy(True))
    (text,) = code("docs/runs")
    exec(text, names)
    first, *_, last = names["data"].as_numpy_iterator()
    assert names["data"].element_spec[0].shape.as_list() == [None, 24, 24, 1]
    assert first[0].shape == last[0].shape and not np.array_equal(first[0], last[0])
    assert len(names["model"].history.epoch) == 2


def test_the_table_of_reaches():
    names = {}
    exec(code("docs/guide")[0], names)
    row = r"\| .*? \| (\d+) \| ([\d.]+), (\d+) \| ([\d.]+) \| ([\d.]+) \|"
    found = re.findall(row, page("docs/guide"))
    assert len(found) == 5
    for side, ratio, blocks, reach, share in found:
        expected = names["reach"](float(ratio), int(blocks))
        if (side, ratio) == ("96", "1.5"):
            expected /= 2  # at σ₀ = 1/2
        assert float(reach) == pytest.approx(expected, abs=0.06)
        assert float(share) == pytest.approx(expected / int(side), abs=0.006)


def test_the_table_has_the_presets():
    table = page("docs/guide").split("## From")[0]
    for name in OF_THE_PAPER:
        if not re.search("separable|without", name):
            preset = ARCHITECTURES[name]
            (row,) = re.findall(rf"^\| `{name}`.*$", table, re.M)
            assert f"| {preset.ratio:g}, {len(preset.widths) - 1} |" in row
