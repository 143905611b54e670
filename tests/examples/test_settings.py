"""What decides a result is in the settings of a run; versions are told."""

import dataclasses
import json
import sys

import keras
import pytest


@pytest.fixture
def settings(examples):
    import settings

    return settings


@pytest.fixture
def experiment(examples):
    from experiments import EXPERIMENTS

    return EXPERIMENTS["digits_max"]


@pytest.fixture
def of(settings):
    def of(experiment, seed=0, images="digits"):
        return json.loads(json.dumps(settings.settings(experiment, seed, images)))

    return of


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("head_initializer", "he_uniform"),
        ("boundary", "symmetric"),
        ("epsilon", 1e-2),
        ("receptive_field", None),
        ("residual", False),
        ("zero_order", True),
        ("widths", (4, 4)),
        ("separable_blocks", 1),
    ],
)
def test_what_the_network_decides_is_there(name, value, experiment, of):
    network = dataclasses.replace(experiment.network, **{name: value})
    other = dataclasses.replace(experiment, network=network)
    assert of(other) != of(experiment)


def test_what_the_package_decides_is_there(experiment, of, settings, monkeypatch):
    before = of(experiment)
    layers = before["layers"]
    found = layers["convolution"]["kernel_initializer"]["class_name"]
    assert found == "HeUniform"
    assert layers["head"]["bias_initializer"]["config"]["value"] == 0.2
    assert layers["normalization"]["momentum"] == 0.9

    class Other(settings.GaussDerConv):
        def __init__(self, *args, kernel_initializer="glorot_uniform", **options):
            super().__init__(*args, kernel_initializer=kernel_initializer, **options)

    monkeypatch.setattr(settings, "GaussDerConv", Other)
    assert of(experiment) != before


def test_seed_precision_and_images_are_there(experiment, of):
    before = of(experiment)
    assert of(experiment, seed=1) != before
    assert of(experiment, images={"test at 1.000": ["a.h5"]}) != before
    keras.config.set_dtype_policy("mixed_bfloat16")
    try:
        assert of(experiment) != before
    finally:
        keras.config.set_dtype_policy("float32")


def test_words_do_not_decide(experiment, of):
    other = dataclasses.replace(experiment, what="other", published="100")
    assert of(other) == of(experiment)


def test_another_version_is_told_and_goes_on(settings, tmp_path, monkeypatch, capsys):
    import reproduce

    monkeypatch.setattr(reproduce, "run", lambda *_: None)
    command = ["reproduce.py", "digits_max", "--out", str(tmp_path)]
    monkeypatch.setattr(sys, "argv", command)
    for _ in range(2):
        reproduce.main()
        assert "Note" not in capsys.readouterr().out
    before = settings.keras_gdrn.__version__
    monkeypatch.setattr(settings.keras_gdrn, "__version__", "9.9")
    reproduce.main()
    assert f"begun with keras_gdrn {before}, now 9.9." in capsys.readouterr().out
    known = json.loads((tmp_path / "versions.json").read_text(encoding="utf-8"))
    assert [found["keras_gdrn"] for found in known] == [before, "9.9"]
