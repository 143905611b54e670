"""The README's examples and that of a search; only what takes long is made shorter."""

import dataclasses
import functools
import re
from pathlib import Path

import keras
import numpy as np
import pytest

from keras_gdrn import data, models, training, tuning

ROOT = Path(__file__).resolve().parents[1]


def examples(page: str) -> list[str]:
    text = (ROOT / page).read_text(encoding="utf-8")
    return re.findall(r"```python\n(.*?)```", text, re.DOTALL)


BUILD, TRAINED, TRAIN = examples("README.md")
SEARCH, *_ = examples("docs/hyperparameters.md")


def random_images(count, shape, classes=10):
    random = np.random.default_rng(count)
    images = random.random((count, *shape), dtype="float32")
    return images, random.integers(classes, size=count)


@pytest.mark.usefixtures("step_by_step")
def test_the_functional_model(tmp_path):
    names = {}
    exec(BUILD, names)
    model = names["model"]
    images, labels = random_images(2, (64, 64, 3))
    model.compile("adam", keras.losses.SparseCategoricalCrossentropy(from_logits=True))
    assert np.isfinite(model.fit(images, labels, verbose=0).history["loss"]).all()
    assert model.predict(images, verbose=0).shape == (2, 10)
    model.save(tmp_path / "model.keras")
    again = keras.saving.load_model(tmp_path / "model.keras")
    np.testing.assert_allclose(again(images), model(images), atol=1e-6)


def test_the_trained_network_recognizes_a_digit_at_three_sizes(capsys):
    exec(TRAINED, {})
    told = re.findall(r"^(0\.5|1|2) \[(\d)\] \[(\d)\]$", capsys.readouterr().out, re.M)
    assert [factor for factor, _, _ in told] == ["0.5", "1", "2"]
    for _, label, answer in told:
        assert label == answer


@pytest.mark.usefixtures("step_by_step")
def test_training_by_a_recipe(tmp_path, monkeypatch):
    name = "rescaled_cifar10"
    narrow = functools.partial(models.architecture, widths=(4, 4), sigma0=(1.0,))
    short = dataclasses.replace(
        training.RECIPES[name], epochs=1, warmup_epochs=0, batch_size=2
    )
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(models, "architecture", narrow)
    monkeypatch.setattr(training, "RECIPES", {name: short})

    def downloaded(*_, download=False, **__):
        assert download  # on a fresh machine there is nothing
        return random_images(4, (64, 64, 3))

    monkeypatch.setattr(data, "rescaled", downloaded)
    names = {}
    exec(TRAIN, names)
    result = names["scale_generalization"](names["model"], names["tests"])
    assert result.accuracies.shape == (9,)
    assert (tmp_path / "runs" / "cifar10" / "log.csv").exists()


@pytest.mark.usefixtures("step_by_step")
# Keras Tuner still asks for threads by their old name.
@pytest.mark.filterwarnings(
    "ignore:(currentThread|getName):DeprecationWarning:keras_tuner"
)
def test_a_search_in_three_lines(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    images, labels = random_images(32, (40, 40, 1))
    validation = random_images(8, (40, 40, 1))
    names = {
        "images": images,
        "labels": labels,
        "validation": validation,
        "twice_as_large": random_images(9, (40, 40, 1)),
        "space": tuning.SearchSpace(blocks=(1,), stem_width=(4,), width=(4,)),
    }
    short = SEARCH.replace("max_trials=20", "max_trials=1")
    exec(short.replace("Recipe(8, 32)", "Recipe(1, 32), space=space"), names)
    (trial,) = names["tuner"].oracle.get_best_trials(1)
    assert trial.status == "COMPLETED"
    assert 0 <= trial.score <= 1
    assert trial.metrics.get_last_value("over_budget") == 0
    (model,) = names["tuner"].get_best_models(1)
    assert model.predict(validation[0], verbose=0).shape == (8, 10)
