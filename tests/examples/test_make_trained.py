"""A run becomes weights and a card that `from_preset` can load."""

import importlib
import json

import keras
import numpy as np
import pytest

from keras_gdrn.models import _from_preset, architecture, from_preset


@pytest.fixture
def script(examples):
    return importlib.import_module("make_trained")


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


@pytest.mark.slow
@pytest.mark.parametrize("limit", [(), ("--limit", 2, "--canvas", 24)])
def test_weights_and_card_are_those_of_the_run(
    script, main, run, tmp_path, monkeypatch, limit
):
    out = tmp_path / "trained"
    if not limit:  # a run that was tested on all images is not tested again
        monkeypatch.setattr(script, "scale_generalization", None)
    main(script, run, "digits", "--out", out, "--shift-images", 2, *limit)
    monkeypatch.setattr(_from_preset, "FOLDER", out)
    card = _from_preset.list_presets()["digits"]
    assert (card.test_images, card.shift_images) == (2 if limit else 797, 2)
    if not limit:
        assert card.accuracy == {"0.5": 0.25, "1.414": 0.33333}
    assert card.command == "python x.py (seed 3)"
    assert card.object_sizes == (10, 40) and [*card.shift_accuracy] == [*"048", "12"]
    expected = keras.models.load_model(run / "model.keras", compile=False)
    loaded = from_preset("digits")
    assert loaded.get_layer("preprocess").object_size == 20
    for mine, theirs in zip(loaded.get_weights(), expected.get_weights(), strict=True):
        np.testing.assert_array_equal(mine, theirs)


def test_an_incomplete_run_is_an_error_in_one_line(script, main, tmp_path):
    with pytest.raises(SystemExit, match=r"error: .*results\.json"):
        main(script, tmp_path, "digits")
