"""Files that Keras Tuner could not read are told by their names."""

import json
import os
from pathlib import Path

import keras_tuner
import pytest
from gdrn_search.keras_tuner_internals import mend_keras_tuner
from gdrn_search.state import check_state

pytestmark = pytest.mark.filterwarnings(
    "ignore:(currentThread|getName):DeprecationWarning:keras_tuner"
)
FILES = ("trials/trial_0/trial.json", "trials/oracle.json", "trials/tuner0.json")


@pytest.fixture
def tuner(tmp_path):
    """Makes a tuner in a folder; one of two trials that have ended is in `tmp_path`."""

    class Constant(keras_tuner.RandomSearch):
        def run_trial(self, trial, *args, **kwargs):
            return {"score": trial.hyperparameters.Float("x", 0.0, 1.0)}

    def make(folder=tmp_path):
        return Constant(
            objective=keras_tuner.Objective("score", "max"),
            max_trials=2,
            directory=str(folder),
            project_name="trials",
        )

    make().search(verbose=0)
    return make


def test_what_keras_tuner_has_written_is_fine(tuner, tmp_path):
    for name in FILES:
        assert (tmp_path / name).exists()
    check_state(tmp_path / "trials")
    check_state(tmp_path / "not there yet")


@pytest.mark.parametrize("name", FILES)
@pytest.mark.parametrize("content", [b"", b"{", b"\xff\xfe\x00", b"[1, 2]", b"NaN"])
def test_foreign_file(tuner, tmp_path, name, content):
    (tmp_path / name).write_bytes(content)
    with pytest.raises(ValueError, match=rf"{name.split('/')[-1]} must be .*backup"):
        check_state(tmp_path / "trials")


@pytest.mark.parametrize("name", FILES[:2])
def test_every_part_of_the_state_is_needed(tuner, tmp_path, name):
    state = json.loads((tmp_path / name).read_text(encoding="utf-8"))
    for part in state:
        for value in ({}, {part: 7.5}):
            spoiled = {key: state[key] for key in state if key != part} | value
            (tmp_path / name).write_text(json.dumps(spoiled), encoding="utf-8")
            if not readable(tuner):
                with pytest.raises(ValueError, match="must be a file of Keras"):
                    check_state(tmp_path / "trials")


@pytest.mark.parametrize("name", FILES)
def test_missing_file(tuner, tmp_path, name):
    (tmp_path / name).unlink()
    with pytest.raises(FileNotFoundError, match=rf"{name} is missing.*backup"):
        check_state(tmp_path / "trials")


def test_files_that_an_interruption_leaves_out(tuner, tmp_path, monkeypatch):
    mend_keras_tuner()
    written, replace = [], os.replace

    def watched(partial, file):
        replace(partial, file)
        check_state(tmp_path / "other" / "trials")
        written.append(Path(file).name)

    monkeypatch.setattr(os, "replace", watched)
    tuner(tmp_path / "other").search(verbose=0)
    assert written[:2] == ["trial.json", "oracle.json"]
    assert written.count("tuner0.json") == 2


def readable(tuner):
    try:
        tuner()
    except Exception:
        return False
    return True
