"""The folder of a run: what it refuses, who may use it, and what is damaged."""

import errno
import itertools
import json
import shutil
import time
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from pathlib import Path

import filelock
import keras
import numpy as np
import pytest

from keras_gdrn.training import Recipe, claim_folder, fit, lock_folder
from keras_gdrn.training._model import architecture
from tests.training._small import (
    ARRAYS,
    IMAGES,
    LABELS,
    RECIPE,
    OneEpoch,
    StopAt,
    assert_same_weights,
    gauss_der_network,
    network,
)

pytestmark = pytest.mark.usefixtures("step_by_step")
CHECKPOINT = "checkpoint.weights.h5"


def train(out, model=None, data=ARRAYS, to_the_end=False, callbacks=(), **options):
    """Trains for an epoch, or until the end."""
    callbacks = [callbacks, () if to_the_end else OneEpoch()]
    options = {"recipe": RECIPE, "callbacks": callbacks, "verbose": 0, **options}
    return fit(model or network(), data=data, out=out, **options)


@pytest.fixture(scope="module")
def trained(tmp_path_factory) -> Path:
    """A run after one epoch, not to be written to."""
    folder = tmp_path_factory.mktemp("run")
    train(folder)
    return folder


@pytest.fixture
def run(trained, tmp_path) -> Path:
    """A run after one epoch."""
    return shutil.copytree(trained, tmp_path / "run")


def frozen() -> keras.Model:
    """Within a layer, whose configuration does not tell."""
    model = network()
    model.layers[0].kernel.trainable = False
    return model


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"model": network(activation="tanh")}, r"activation: linear, now tanh"),
        ({"model": network(rate=0.2)}, r"rate: 0\.3, now 0\.2"),
        ({"model": network(trainable=False)}, r"trainable: True, now False"),
        ({"model": network(dtype="float16")}, r"name: float32, now float16"),
        ({"model": frozen()}, r"weights\.0: .*True, now .*False"),
        ({"model": gauss_der_network()}, r"class_name: Sequential, now Functional"),
        ({"data": (1 - IMAGES, LABELS)}, r"data\.0: .*, now "),
        ({"data": (IMAGES, LABELS[::-1])}, r"data\.1: .*, now "),
        ({"data": (*ARRAYS, np.ones(44))}, r"data\.2: nothing, now "),
        ({"class_weight": {1: 2}}, r"class_weight\.1: nothing, now 2\.0"),
        ({"seed": 1}, r"other settings(.|\n)*seed: 0, now 1"),
        ({"recipe": Recipe(4, 16)}, r"epochs: 3, now 4"),
    ],
)
def test_other_settings_are_refused(trained, options, message):
    with pytest.raises(FileExistsError, match=message):
        train(trained, **options)


class Own(keras.layers.Layer):
    """A user's own layer, of which Keras knows no configuration."""

    def __init__(self, function):
        super().__init__()

    def call(self, inputs):
        return inputs


def own(*kinds: str) -> keras.Model:
    layers = [getattr(keras.layers, kind)() for kind in kinds]
    return keras.Sequential([keras.Input((4,)), Own(keras.ops.square), *layers])


def crossed(*order: int) -> keras.Model:
    """How layers are connected matters."""
    image = keras.Input((4,))
    branches = [keras.layers.Dense(3, kind)(image) for kind in (None, "relu")]
    return keras.Model(image, keras.layers.Subtract()([branches[n] for n in order]))


def chained(*order: int) -> keras.Model:
    """Which of two equal layers is meant matters."""
    layers = [keras.Input((4,))]
    layers += [keras.layers.Dense(4)(layers[0])]
    layers += [keras.layers.Dense(4)(layers[1])]
    return keras.Model(layers[0], keras.layers.Add()([layers[n] for n in order]))


OPTIONS = {
    "ratio": 1.3,
    "boundary": "symmetric",
    "receptive_field": None,
    "scale_dropout": 0.2,
    "scale_pooling": "average",
    "subpixel": True,
}
NETWORKS = [
    *(partial(own, *kinds) for kinds in (("ReLU", "Flatten"), ("Flatten", "ReLU"))),
    *(partial(crossed, *order) for order in ((0, 1), (1, 0))),
    *(partial(chained, *order) for order in ((1, 2), (2, 2))),
    *(partial(gauss_der_network, **{name: value}) for name, value in OPTIONS.items()),
    gauss_der_network,
]


def test_networks_are_told_apart_whatever_names_keras_gives():
    seen, again = ([architecture(make()) for make in NETWORKS] for _ in range(2))
    assert seen == again
    for one, other in itertools.combinations(seen, 2):
        assert one != other


def test_one_channel_serves_networks_of_many_kinds():
    """The first stage of one can be taken over by another."""
    expected = architecture(gauss_der_network(sigma0=(1.0,)))
    for name in ("scale_dropout", "scale_pooling", "subpixel"):
        one = gauss_der_network(sigma0=(1.0,), **{name: OPTIONS[name]})
        assert architecture(one) == expected


def test_differences_are_told_the_shallow_ones_first_and_a_long_list_is_cut(tmp_path):
    names = ["a.b", *(f"name{n:02}" for n in range(19))]
    claim_folder(tmp_path, dict.fromkeys(names, 0))
    message = r":\n  name00: 0, now 1\n(.|\n)*name07: 0, now 1\n  and 12 more$"
    for _ in range(2):
        with pytest.raises(FileExistsError, match=message):
            claim_folder(tmp_path, dict.fromkeys(names, 1))


def test_rows_know_their_columns(run):
    """Validation data come and go between calls."""
    first = train(run, validation_data=ARRAYS).history
    found = train(run).history
    assert {*found} == {"loss", "accuracy", "seconds", "val_loss", "val_accuracy"}
    assert found["loss"][:2] == first["loss"]
    assert np.isnan(found["val_loss"]).tolist() == [True, False, True]


def test_the_log_is_that_of_the_checkpoint(run):
    """Whatever was done to it, or written after the checkpoint."""
    log = run / "log.csv"
    expected = log.read_text(encoding="utf-8")
    for content in (b"", b"epoch,loss\n\xff", expected.encode() + b"1,0.5\n"):
        log.write_bytes(content)
        with pytest.raises(KeyboardInterrupt):
            train(run, callbacks=StopAt(1, 0))
        assert log.read_text(encoding="utf-8") == expected
    log.unlink()
    assert train(run).epoch == [0, 1]
    assert len(log.read_text(encoding="utf-8").splitlines()) == 3


def test_a_checkpoint_is_there_at_any_moment(run, monkeypatch):
    def save_a_part(model, path, **options):
        Path(path).write_bytes(b"a part")
        raise KeyboardInterrupt

    with monkeypatch.context() as patch, pytest.raises(KeyboardInterrupt):
        patch.setattr(keras.Model, "save_weights", save_a_part)
        train(run)
    own = run / "epoch-best.weights.h5"
    own.write_bytes(b"of a callback")
    assert train(run).epoch == [0, 1]
    assert own.read_bytes() == b"of a callback"


def test_lost_or_damaged_files_are_told_and_the_run_goes_on_from_a_copy(run, tmp_path):
    files = [run / CHECKPOINT, run / "settings.json", tmp_path / "other" / CHECKPOINT]
    train(tmp_path / "other", seed=1)
    checkpoint, settings, of_another_run = (file.read_bytes() for file in files)
    gone = r"has the log\.csv of a run, but its checkpoint is gone"
    damaged = r"checkpoint\.weights\.h5 is damaged or of another run.*from a backup"
    foreign = r"settings\.json must be the settings of a run.*choose another folder"
    harm = [(0, None, gone), (1, None, "files that are not of such a run")]
    harm += [(1, content, foreign) for content in (b"", b"{", b"\xff\xfe\x00")]
    for content in (checkpoint[: len(checkpoint) // 2], b"", of_another_run):
        harm += [(0, content, damaged)]
    for n in (0, len(checkpoint) // 2, len(checkpoint) - 1):
        flipped = bytes([checkpoint[n] ^ 4])
        harm += [(0, checkpoint[:n] + flipped + checkpoint[n + 1 :], damaged)]
    for number, content, message in harm:
        files[number].unlink()
        if content is not None:
            files[number].write_bytes(content)
        error = OSError if message is damaged else FileExistsError
        with pytest.raises(error, match=message):
            train(run)
        files[number].write_bytes((checkpoint, settings)[number])
    assert train(run).epoch == [0, 1]


def test_one_folder_is_of_one_process(tmp_path):
    message = f"{tmp_path} is in use by another process"
    with lock_folder(tmp_path), pytest.raises(BlockingIOError, match=message):
        train(tmp_path)
    assert not list(tmp_path.iterdir())
    train(tmp_path)
    with pytest.raises(FileExistsError):
        train(tmp_path, seed=1)
    with lock_folder(tmp_path):  # it is free again after each, failed or not
        pass


def test_a_folder_can_be_waited_for(tmp_path):
    def wait():
        with lock_folder(tmp_path, seconds=60):
            return True

    with ThreadPoolExecutor(1) as pool:
        with lock_folder(tmp_path):
            waiting = pool.submit(wait)
            time.sleep(0.2)
            assert not waiting.done()
        assert waiting.result()


def test_a_file_system_without_locks(tmp_path, monkeypatch):
    def failing(lock, **options):
        raise OSError(errno.ENOLCK, "No locks available")

    monkeypatch.setattr(filelock.FileLock, "acquire", failing)
    with (
        pytest.warns(UserWarning, match=r"has no locks \(.*No locks available"),
        lock_folder(tmp_path / "made"),
    ):
        assert (tmp_path / "made").is_dir()


def test_a_full_disk_is_told_and_nothing_lost(run, monkeypatch):
    usage = shutil._ntuple_diskusage(1, 1, 10**4)
    with monkeypatch.context() as patch:
        patch.setattr(shutil, "disk_usage", lambda folder: usage)
        with pytest.raises(OSError, match="No space left for a checkpoint") as error:
            train(run)
    assert error.value.errno == errno.ENOSPC
    assert train(run).epoch == [0, 1]


def test_a_run_is_of_a_backend_and_keras_loads_its_checkpoints(trained):
    settings = json.loads((trained / "settings.json").read_text(encoding="utf-8"))
    assert settings["backend"] == keras.backend.backend()
    network().load_weights(trained / CHECKPOINT, skip_mismatch=False)


def poison(model: keras.Model, when: str, batches: int) -> keras.callbacks.Callback:
    """Makes a weight NaN at the begin or the end of a batch, after so many."""

    def spoil(batch, logs):
        if model.optimizer.iterations == batches:
            weight = model.trainable_variables[-1]
            weight.assign(keras.ops.full_like(weight, float("nan")))

    return keras.callbacks.LambdaCallback(**{f"on_train_batch_{when}": spoil})


@pytest.mark.parametrize(("when", "batches"), [("begin", 3), ("end", 6)])
def test_a_loss_or_a_weight_that_is_not_finite_stops_the_run(tmp_path, when, batches):
    model, expected, resumed = network(), network(), network()
    callback = poison(model, when, batches)
    with pytest.raises(FloatingPointError, match=r"not finite in epoch 2.*last good"):
        train(tmp_path, model, to_the_end=True, callbacks=callback)
    fit(expected, RECIPE, ARRAYS, verbose=0)
    found = train(tmp_path, resumed, to_the_end=True)
    assert found.epoch == [0, 1, 2]
    assert_same_weights(resumed, expected)


def test_it_goes_on_if_it_is_told_to(tmp_path):
    model = network()
    options = {"callbacks": [poison(model, "begin", 3)], "check_finite": False}
    options |= {"to_the_end": True, "checkpoint_minutes": 0}
    found = train(tmp_path, model, **options).history
    assert np.isfinite(found["loss"]).tolist() == [True, False, False]
    assert train(tmp_path).epoch == [0, 1]  # from the checkpoint of the first
