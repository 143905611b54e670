"""A run becomes weights and a card that `from_preset` can load."""

import json
import sys

import keras
import numpy as np
import pytest

from keras_gdrn.models import _from_preset, architecture, from_preset


@pytest.fixture
def run(tmp_path):
    """What `reproduce.py` leaves of a complete run, with an untrained network."""
    folder = tmp_path / "run"
    folder.mkdir()
    keras.utils.set_random_seed(3)
    architecture("digits").save(folder / "model.keras")
    record = {"command": "python x.py", "seed": 3, "date": "2026-01-01"}
    record["environment"] = {"keras": keras.__version__}
    record |= {"name": "digits_max", "experiment": {"test_limit": None}}
    record |= {"factors": [0.5, 2**0.5], "accuracies": {"digits_max": [0.25, 1 / 3]}}
    (folder / "results.json").write_text(json.dumps(record), encoding="utf-8")
    return folder


def test_weights_and_card_are_those_of_the_run(examples, run, tmp_path, monkeypatch):
    import make_trained

    out = tmp_path / "trained"
    command = ["make_trained.py", str(run), "digits", "--out", str(out)]
    monkeypatch.setattr(sys, "argv", [*command, "--limit", "2", "--canvas", "24"])
    make_trained.main()
    monkeypatch.setattr(_from_preset, "FOLDER", out)
    card = _from_preset.list_presets()["digits"]
    assert (card.test_images, card.shift_images) == (2, 2)
    assert card.command == "python x.py (seed 3)"
    assert card.object_sizes == (10, 40) and [*card.shift_accuracy] == [*"048", "12"]
    expected = keras.models.load_model(run / "model.keras", compile=False)
    loaded = from_preset("digits")
    assert loaded.get_layer("preprocess").object_size == 20
    for mine, theirs in zip(loaded.get_weights(), expected.get_weights(), strict=True):
        np.testing.assert_array_equal(mine, theirs)


def test_a_run_that_was_tested_on_all_images_is_not_tested_again(
    examples, run, tmp_path, monkeypatch
):
    import make_trained

    out = ["--out", str(tmp_path), "--shift-images", "2"]
    command = ["make_trained.py", str(run), "digits", *out]
    monkeypatch.setattr(sys, "argv", command)
    monkeypatch.setattr(make_trained, "evaluate", None)
    make_trained.main()
    monkeypatch.setattr(_from_preset, "FOLDER", tmp_path)
    card = _from_preset.list_presets()["digits"]
    assert card.accuracy == {"0.5": 0.25, "1.414": 0.33333}
    assert card.test_images == 797


def test_incomplete_run_is_an_error_in_one_line(examples, tmp_path, monkeypatch):
    import make_trained

    monkeypatch.setattr(sys, "argv", ["make_trained.py", str(tmp_path), "digits"])
    with pytest.raises(SystemExit, match=r"error: .*results\.json"):
        make_trained.main()
