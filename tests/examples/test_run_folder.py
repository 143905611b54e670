"""A run's folder: refused to another run, and resumed after an interruption."""

import csv

import keras
import numpy as np
import pytest


@pytest.fixture
def run_folder(examples):
    import run_folder

    return run_folder


class StopIn(keras.callbacks.Callback):
    """Interrupts training in the middle of an epoch."""

    def __init__(self, epoch):
        super().__init__()
        self.epoch = epoch

    def on_epoch_begin(self, epoch, logs=None):
        self.stop = epoch == self.epoch

    def on_train_batch_end(self, batch, logs=None):
        if self.stop and batch == 1:
            raise KeyboardInterrupt


def fit(callbacks, epochs=4):
    keras.utils.set_random_seed(0)
    model = keras.Sequential([keras.Input((2,)), keras.layers.Dense(1)])
    model.compile(keras.optimizers.AdamW(0.1), "mse")
    x = np.random.default_rng(0).normal(size=(12, 2)).astype("float32")
    options = {"batch_size": 4, "shuffle": False, "verbose": 0}
    model.fit(x, x[:, :1], epochs=epochs, callbacks=callbacks, **options)
    return [np.asarray(variable) for variable in model.optimizer.variables]


def epochs_logged(out):
    with open(out / "train.csv", newline="") as file:
        return [int(row["epoch"]) for row in csv.DictReader(file)]


def test_an_interrupted_run_ends_as_one_that_was_not(run_folder, tmp_path):
    expected = fit([])
    interrupted = run_folder.callbacks(tmp_path, "train")
    with pytest.raises(KeyboardInterrupt):
        fit([*interrupted, StopIn(2)])
    for callback in interrupted:  # as the end of the process does
        if isinstance(callback, keras.callbacks.CSVLogger):
            callback.csv_file.close()
    assert epochs_logged(tmp_path) == [0, 1]
    found = fit(run_folder.callbacks(tmp_path, "train"))
    assert epochs_logged(tmp_path) == [0, 1, 2, 3]
    for value, wanted in zip(found, expected, strict=True):
        np.testing.assert_allclose(value, wanted, rtol=1e-5)
    assert run_folder.seconds_of_training(tmp_path)["train"] > 0


def test_a_complete_stage_is_not_trained_again(run_folder, tmp_path):
    first = fit(run_folder.callbacks(tmp_path, "train"))
    second = fit(run_folder.callbacks(tmp_path, "train"))
    for value, wanted in zip(second, first, strict=True):
        np.testing.assert_array_equal(value, wanted)
    assert epochs_logged(tmp_path) == [0, 1, 2, 3]
    run_folder.drop_backups(tmp_path)
    assert [path.name for path in tmp_path.iterdir()] == ["train.csv"]


def test_a_folder_belongs_to_one_run(run_folder, tmp_path):
    settings = {"seed": 0, "widths": (4, 4)}
    run_folder.claim(tmp_path / "run", settings)
    run_folder.claim(tmp_path / "run", settings)
    with pytest.raises(FileExistsError, match=r"other settings(.|\n)*seed: 0, now 1$"):
        run_folder.claim(tmp_path / "run", {**settings, "seed": 1})


def test_a_folder_with_other_files_is_left_alone(run_folder, tmp_path):
    (tmp_path / "thesis.tex").touch()
    with pytest.raises(FileExistsError, match="not of such a run"):
        run_folder.claim(tmp_path, {"seed": 0})
    assert [path.name for path in tmp_path.iterdir()] == ["thesis.tex"]
