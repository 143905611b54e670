"""The command: a search in parts, its files, a test of its best network, errors."""

import sys
from unittest import mock

import keras
import keras_tuner
import numpy as np
import pytest

# So that their names can be parameters.
import report
import search
import trial_data

from keras_gdrn.data import DATASETS, rescaled_arrays
from keras_gdrn.training import lock_folder
from keras_gdrn.tuning import SearchSpace
from tests._commands import cells
from tests.tuning._tiny import TINY

LITTLE = (
    *("--limit", "16", "--validation-limit", "4", "--canvas", "12"),
    *("--factors", "0.5", "1", "--epochs", "1", "--single-scale-epochs", "1"),
)


@pytest.fixture
def command(monkeypatch, tmp_path):
    """Runs a script's main function with options, in a folder of its own."""
    monkeypatch.setitem(search.SPACES, "small", TINY)
    monkeypatch.chdir(tmp_path)

    def run(*options, main=search.main):
        monkeypatch.setattr(sys, "argv", ["a script", *map(str, options)])
        return main()

    return run


@pytest.fixture
def options(command):
    """The options of a command line."""
    return lambda *given: command(*given, main=lambda: search.parse(search.__doc__))


def test_a_bayesian_search_looks_at_scores_before_its_trials_are_over(options):
    for trials, expected in {12: 4, 6: 3}.items():
        found = options("--tuner", "bayesian", "--max-trials", trials)
        oracle = search.make_tuner(found, search.make_hypermodel(found)).oracle
        assert oracle.num_initial_points == expected


@pytest.mark.slow
def test_search_in_parts_and_its_best_network(command, tmp_path, capsys):
    out, only = tmp_path / "found", ("--only", "ratio", "scale_pooling")
    arguments = (*LITTLE, *only, "--out", out)
    command(*arguments, "--max-trials", 1)
    first = (out / "trials" / "trial_0" / "trial.json").read_bytes()
    command(*arguments, "--max-trials", 2)
    assert (out / "trials" / "trial_0" / "trial.json").read_bytes() == first
    text = capsys.readouterr().out
    assert "2 trials: 2 trained, 0 failed" in text
    table = (out / "trials.md").read_text(encoding="utf-8").split("\n\n")[1]
    assert table in text
    assert len(table.splitlines()) == 4
    assert (out / "trials.png").stat().st_size > 10_000
    shape = keras.saving.load_model(out / "model.keras").input_shape
    assert shape == (None, 12, 12, 1)
    before = (out / "model.keras").read_bytes()
    for other in (("--dataset", "mnist"), ("--seed", 5), ("--only", "ratio")):
        with pytest.raises(SystemExit, match="error: "):
            command(*arguments, *other)
    assert (out / "model.keras").read_bytes() == before


def test_interrupted_search_finds_the_same(command, monkeypatch, capsys):
    """A trial's random numbers are its own, whatever was run before in its process.

    What there is at the interruption is written.
    """
    begun, interrupted, write = [], None, mock.Mock()

    def fit(self, hp, model, x, *, callbacks, **_):
        begun.append(callbacks[0].trial.trial_id)
        if begun == interrupted:
            raise KeyboardInterrupt
        return {"val_mean_accuracy": float(keras.random.uniform(()))}

    def found(out):
        command(*LITTLE, "--only", "ratio", "--max-trials", 2, "--out", out)
        trials = write.call_args.args[0].oracle.trials
        return [(trials[n].hyperparameters.values, trials[n].score) for n in "01"]

    monkeypatch.setattr(search.GaussDerResNetHyperModel, "fit", fit)
    monkeypatch.setattr(search, "write", write)
    whole = found("whole")
    begun, interrupted = [], ["0", "1"]
    assert found("parts") == [whole[0], (whole[1][0], None)]
    assert "Interrupted; the same command resumes" in capsys.readouterr().out
    assert found("parts") == whole
    assert begun == ["0", "1", "1"]


def test_failed_trial_is_told(command, monkeypatch, capsys):
    failing = mock.Mock(side_effect=OSError("No space left on device"))
    monkeypatch.setattr(search.GaussDerResNetHyperModel, "fit", failing)
    with pytest.raises(SystemExit, match=r"1 trials: .* 1 failed"):
        command(*LITTLE, "--max-trials", 1)
    assert "Trial 0 failed: OSError: No space left" in capsys.readouterr().out


def test_folder_of_something_else(command, tmp_path):
    with lock_folder(tmp_path), pytest.raises(SystemExit, match=r"error: .* in use"):
        command(*LITTLE, "--out", tmp_path)


@pytest.mark.parametrize(
    ("given", "expected"),
    [
        (("--parallel", 2), {"parallel": 2, "address": None}),
        (("--ray", "auto", "--gpus", 0.5), {"address": "auto", "gpus": 0.5}),
    ],
)
def test_search_on_ray_is_asked_for(given, expected, command, monkeypatch):
    asked = mock.Mock()
    monkeypatch.setattr(search, "search_on_ray", asked)
    with pytest.raises(SystemExit, match="no network was trained"):
        command(*LITTLE, *given)
    assert expected.items() <= asked.call_args.kwargs.items()


@pytest.mark.parametrize(
    ("given", "message"),
    [
        (("--max-trials", 0), "must be finite and positive. Received: 0"),
        (("--objective", "val_accuracy", "--factors", 2), "factor 1 in --factors"),
        (("--gpus", 1), "need --parallel or --ray"),
        (("--dataset", "mnist", "--data-dir", "none"), "mnist has not been prepared"),
        (("--only", "ratoi"), "Received: ['ratoi']"),
    ],
)
def test_options_that_do_not_fit(command, given, message, tmp_path, capsys):
    with pytest.raises(SystemExit) as error:
        command(*given)
    assert message in f"{error.value} {capsys.readouterr().err}"
    assert not list(tmp_path.iterdir())


def test_validation_is_never_of_the_test(options, monkeypatch):
    given = options("--factors", 1, "--validation-limit", 150)
    images, labels = trial_data.validation(given)[1.0]
    everything, every_label = rescaled_arrays("digits", "train")
    np.testing.assert_array_equal(images, everything[800:950])
    np.testing.assert_array_equal(labels, every_label[800:950])
    trained = [label for _, label in trial_data.training(given)(None)]
    np.testing.assert_array_equal(trained, every_label[:800])
    arrays = mock.Mock(return_value=(images, labels))
    monkeypatch.setattr(trial_data, "rescaled_arrays", arrays)
    trial_data.validation(options("--dataset", "mnist", "--factors", 2))
    assert arrays.call_args.args == ("mnist", "validation", 2.0)
    assert arrays.call_args.kwargs["limit"] == 500


def test_augmentation_is_the_papers(options):
    for name in DATASETS:
        recipe = search.recipe(options("--dataset", name))
        assert bool(recipe.augmentation.flip) == (name not in ("mnist", "digits"))
        assert recipe.epochs == 4


def test_the_small_space_is_a_part_of_the_default_one_but_for_its_size():
    for name in ("order", "scale_dropout", "sigma0_spacing", "batch_size"):
        small = getattr(search.SPACES["small"], name)
        assert set(small) <= set(getattr(SearchSpace(), name))


def test_best_first_and_without_those_that_failed(tmp_path):
    hp = keras_tuner.HyperParameters()
    hp.Choice("ratio", [1.25, 2.25, 3.25])
    fixed = {"blocks": 1, "stem_width": 8, "width_1": 16, "width_2": 24}
    for name, value in {**fixed, "scale_pooling": "max", "tuner/epochs": 3}.items():
        hp.Fixed(name, value)
    named = {"objective": "val_accuracy", "hyperparameters": hp, "directory": tmp_path}
    tuner = keras_tuner.GridSearch(mock.Mock(), **named)
    first, best = ({"parameters": 1234, "val_accuracy": of} for of in (0.5, 0.75))
    failure = keras_tuner.errors.FailedTrialError
    tuner.run_trial = mock.Mock(side_effect=[first, failure, best])
    tuner.search(verbose=0)
    counts, table = report.report(tuner).split("\n\n")
    assert counts == "3 trials: 2 trained, 1 failed."
    header, _, best, second = (row[1:] for row in cells(table))
    assert header == ["val_accuracy", "parameters", "widths", "ratio", "scale pooling"]
    assert best == ["0.7500", "1,234", "8, 16", "3.25", "max"]
    assert second == ["0.5000", "1,234", "8, 16", "1.25", "max"]
    plots = report.plot_trials(tuner).axes
    dots = [plot.collections[0].get_offsets().tolist() for plot in plots]
    assert dots[0] == [[3.25, 0.75], [1.25, 0.5]]
    assert dots[2] == [[1234, 0.75], [1234, 0.5]]
    assert plots[0].get_ylabel() == "val_accuracy"
