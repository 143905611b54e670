"""The folder of a run: what it refuses, who may use it, and what is damaged."""

import contextlib
import errno
import itertools
import shutil
from functools import partial
from pathlib import Path

import filelock
import keras
import numpy as np
import pytest

from keras_gdrn.layers import ScaleChannels, ScalePooling
from keras_gdrn.models import scale_channel
from keras_gdrn.training import Recipe, claim_folder, fit, lock_folder
from keras_gdrn.training._checkpoint import history, resume
from keras_gdrn.training._model import comparable_config
from tests.training._small import (
    ARRAYS,
    IMAGES,
    LABELS,
    RECIPE,
    StopAt,
    assert_same_weights,
    gauss_der_network,
    network,
)

pytestmark = pytest.mark.usefixtures("step_by_step")
CHECKPOINT, SETTINGS = "checkpoint.weights.h5", "settings.json"


def train(out, model=None, **options):
    """Trains for an epoch, unless there are other callbacks."""
    options = {"data": ARRAYS, "recipe": RECIPE, **options}
    if "callbacks" in options:
        return fit(model or network(), out=out, verbose=0, **options)
    model = model or network()
    with contextlib.suppress(Interrupted):
        fit(model, out=out, verbose=0, callbacks=InterruptedAfterAnEpoch(), **options)
    return history(resume(model, out).rows)


class Interrupted(BaseException):
    pass


class InterruptedAfterAnEpoch(keras.callbacks.Callback):
    def on_epoch_end(self, epoch, logs=None):
        raise Interrupted


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
        ({"model": network(rate=0.2)}, r"rate: 0\.3, now 0\.2"),
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


def own(*kinds: type[keras.layers.Layer]) -> keras.Model:
    layers = [Own(keras.ops.square), *(kind() for kind in kinds)]
    return keras.Sequential([keras.Input((4,)), *layers])


def chained(*order: int) -> keras.Model:
    """Which of two equal layers is meant matters."""
    layers = [keras.Input((4,))]
    layers += [keras.layers.Dense(4)(layers[0])]
    layers += [keras.layers.Dense(4)(layers[1])]
    return keras.Model(layers[0], keras.layers.Add()([layers[n] for n in order]))


# Which have no effect with one scale channel: its first stage serves networks of each.
OF_SEVERAL = {"scale_dropout": 0.2, "scale_pooling": "average"}
NETWORKS = [
    partial(own, keras.layers.ReLU, keras.layers.Flatten),
    partial(own, keras.layers.Flatten, keras.layers.ReLU),
    partial(chained, 1, 2),
    partial(chained, 2, 2),
    gauss_der_network,
    *(partial(gauss_der_network, **{k: value}) for k, value in OF_SEVERAL.items()),
]


def test_networks_are_told_apart_whatever_names_keras_gives():
    seen, again = ([comparable_config(make()) for make in NETWORKS] for _ in range(2))
    assert seen == again
    for one, other in itertools.combinations(seen, 2):
        assert one != other
    single, *others = (comparable_config(make(sigma0=(1.0,))) for make in NETWORKS[4:])
    assert others == 2 * [single]


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
    expected = log.read_bytes()
    log.write_bytes(expected + b"1,0.5,\xff\n")
    with pytest.raises(KeyboardInterrupt):
        train(run, callbacks=StopAt(1, 0))
    assert log.read_bytes() == expected
    log.unlink()
    assert train(run).epoch == [0, 1]
    assert len(log.read_bytes().splitlines()) == 3


def test_a_checkpoint_is_there_at_any_moment(run, monkeypatch):
    def save_a_part(model, path, **options):
        Path(path).write_bytes(b"a part")
        raise KeyboardInterrupt

    with monkeypatch.context() as patch, pytest.raises(KeyboardInterrupt):
        patch.setattr(keras.Model, "save_weights", save_a_part)
        train(run)
    assert train(run).epoch == [0, 1]


def test_lost_or_damaged_files_are_told_and_the_run_goes_on_from_a_copy(run, tmp_path):
    train(tmp_path / "other", seed=1)
    of_another_run = (tmp_path / "other" / CHECKPOINT).read_bytes()
    whole = {name: (run / name).read_bytes() for name in (CHECKPOINT, SETTINGS)}
    middle, flipped = len(of_another_run) // 2, bytearray(whole[CHECKPOINT])
    flipped[middle] ^= 4
    gone = r"has the log\.csv of a run, but its checkpoint is gone"
    damaged = r"checkpoint\.weights\.h5 is damaged or of another run.*from a backup"
    foreign = r"settings\.json must be the settings of a run.*choose another folder"
    for name, content, message in (
        (CHECKPOINT, None, gone),
        (CHECKPOINT, b"", damaged),
        (CHECKPOINT, whole[CHECKPOINT][:middle], damaged),
        (CHECKPOINT, flipped, damaged),
        (CHECKPOINT, of_another_run, damaged),
        (SETTINGS, None, "files that are not of such a run"),
        (SETTINGS, b"{", foreign),
        (SETTINGS, b"\xff\xfe\x00", foreign),
    ):
        (run / name).unlink()
        if content is not None:
            (run / name).write_bytes(content)
        error = OSError if message is damaged else FileExistsError
        with pytest.raises(error, match=message):
            train(run)
        (run / name).write_bytes(whole[name])
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


def test_a_file_system_without_locks(tmp_path, monkeypatch):
    def failing(lock, timeout):
        assert timeout == 60
        raise OSError(errno.ENOLCK, "No locks available")

    monkeypatch.setattr(filelock.FileLock, "acquire", failing)
    with (
        pytest.warns(UserWarning, match=r"has no locks \(.*No locks available"),
        lock_folder(tmp_path / "made", seconds=60),
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


def test_keras_loads_a_checkpoint(trained):
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
    with pytest.raises(FloatingPointError, match=r"not finite in epoch 2.*last good"):
        train(tmp_path, model, callbacks=poison(model, when, batches))
    fit(expected, RECIPE, ARRAYS, verbose=0)
    assert train(tmp_path, resumed, callbacks=()).epoch == [0, 1, 2]
    assert_same_weights(resumed, expected)


def test_it_goes_on_if_it_is_told_to(tmp_path):
    model = network()
    options = {"callbacks": poison(model, "begin", 3), "check_finite": False}
    found = train(tmp_path, model, checkpoint_minutes=0, **options).history
    assert np.isfinite(found["loss"]).tolist() == [True, False, False]
    assert train(tmp_path).epoch == [0, 1]  # from the checkpoint of the first


def test_a_network_of_several_scale_channels_is_the_same_in_another_process():
    """Keras' mark of what is shared, an address in memory, is in files alone."""

    def shared():
        channel = scale_channel((12, 12, 1), 10, [4], 1.3)
        image = keras.Input((12, 12, 1))
        parts = [ScaleChannels(channel, scales)(image) for scales in ([0.7], [1, 2])]
        scores = ScalePooling()(keras.layers.Concatenate(axis=1)(parts))
        return channel, keras.Model(image, scores)

    (_, one), (_, other) = shared(), shared()
    assert comparable_config(one) == comparable_config(other)
