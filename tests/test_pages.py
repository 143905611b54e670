"""The examples of the pages run, and the numbers that they compute are right.

Only what takes long is made shorter.
"""

import dataclasses
import re

import keras
import numpy as np
import pytest

from keras_gdrn import data, training, tuning
from keras_gdrn.models import ARCHITECTURES, list_presets
from keras_gdrn.models._architectures import OF_THE_PAPER
from tests._pages import code, page

pytestmark = pytest.mark.usefixtures("step_by_step")


PLAIN, TRAINED = code("README")
*_, BUILD, TRAIN = code("docs/keras_users")


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


def test_plain_keras(monkeypatch):
    def few(*args, **kwargs):
        return rescaled(*args, **kwargs, limit=8)

    rescaled = data.rescaled
    monkeypatch.setattr(data, "rescaled", few)
    names = {}
    exec(PLAIN.replace("epochs=8", "epochs=1"), names)
    assert np.isfinite(names["model"].history.history["loss"]).all()


def test_results_of_readme_have_a_record():
    """Accuracies of the trained network of CIFAR-10 are those of its card."""
    card = list_presets()["cifar10"].accuracy
    for factor, size in (("0.5", "half"), ("1", "the"), ("2", "twice")):
        (row,) = re.findall(
            rf"^\| CIFAR-10, objects of {size}.*$", page("README"), re.M
        )
        assert f"{100 * card[factor]:.1f}" in row, row


def test_the_functional_model():
    names = {}
    exec(BUILD, names)
    model = names["model"]
    model.compile("adam", keras.losses.SparseCategoricalCrossentropy(from_logits=True))
    history = model.fit(*random_images(2, (64, 64, 3)), verbose=0).history
    assert np.isfinite(history["loss"]).all()


def test_the_trained_network_recognizes_a_digit_at_three_sizes(capsys):
    exec(TRAINED, {})
    rows = re.findall(r"^(0\.5|1|2) \[(\d)\] \[(\d)\]$", capsys.readouterr().out, re.M)
    assert [factor for factor, _, _ in rows] == ["0.5", "1", "2"]
    assert all(label == answer for _, label, answer in rows)


def test_training_by_a_recipe(tmp_path, monkeypatch):
    name = "rescaled_cifar10"
    little = {"epochs": 1, "warmup_epochs": 0, "batch_size": 2}
    short = dataclasses.replace(training.RECIPES[name], **little)
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(training, "RECIPES", {name: short})
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


def test_a_search_in_three_lines(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    names = with_images()
    names["space"] = tuning.SearchSpace(blocks=(1,), stem_width=(4,), width=(4,))
    short = code("docs/hyperparameters")[0].replace("max_trials=20", "max_trials=1")
    exec(short.replace("Recipe(8, 32)", "Recipe(1, 32), space=space"), names)
    (trial,) = names["tuner"].oracle.get_best_trials(1)
    assert trial.status == "COMPLETED"
    assert 0 <= trial.score <= 1


def test_the_front_page():
    (text,) = code("docs/index")
    names = with_images()
    exec(text.replace("epochs=8", "epochs=1"), names)
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


def test_the_networks_of_the_page():
    """Its other blocks, one after the other."""
    names = {}
    for block in code("docs/guide")[1:]:
        exec(block, names)
        if "sigma0" in names:
            assert names["model"].input_shape == (None, 224, 224, 3)
            found = names["model"].get_layer("scale_channels").sigma0
            assert max(found) == pytest.approx(max(names["sigma0"])) and max(found) >= 7
    sizes = {name: level.shape[1:] for name, level in names["levels"].items()}
    assert sizes == {f"P{k}": (128 >> k, 128 >> k, 96) for k in range(4)}
