"""The folder of a run: what it refuses, who may use it, and what is damaged."""

import contextlib
import csv
import errno
import json
import os
import shutil
from pathlib import Path

import filelock
import keras
import numpy as np
import pytest

from keras_gdrn.layers import ScaleChannels, ScalePooling
from keras_gdrn.models import gauss_der_resnet
from keras_gdrn.training import Recipe, claim_folder, fit, lock_folder
from keras_gdrn.training._checkpoint import history, write_log
from keras_gdrn.training._model import architecture, parameters

RNG = np.random.default_rng(0)
ARRAYS = (RNG.random((12, 16, 16, 1), "float32"), np.arange(12) % 3)
RECIPE = Recipe(epochs=3, batch_size=6)


def network(**options) -> keras.Model:
    """A plain network, of which each option changes nothing but itself."""
    keras.utils.set_random_seed(0)
    given = {"activation": "relu", "rate": 0.2, "trainable": True, **options}
    rate = given.pop("rate")
    return keras.Sequential(
        [
            keras.Input((16, 16, 1)),
            keras.layers.Conv2D(2, 3, **given),
            keras.layers.Dropout(rate),
            keras.layers.Flatten(),
            keras.layers.Dense(3, dtype="float32"),
        ]
    )


def gauss_der_network(**options) -> keras.Model:
    arguments = {"ratio": 1.3, "sigma0": (1.0, 1.4), "boundary": "zero", **options}
    return gauss_der_resnet((16, 16, 1), 3, (2, 2), **arguments)


def train(out, model=None, data=ARRAYS, epochs_now=1, **options):
    """Trains for an epoch, or for some."""
    minutes = 0 if epochs_now == 1 else None
    options = {"recipe": RECIPE, "max_minutes": minutes, "verbose": 0, **options}
    return fit(model or network(), data=data, out=out, **options)


@pytest.fixture(scope="module")
def run(tmp_path_factory) -> Path:
    """A run after one epoch, not to be written to."""
    folder = tmp_path_factory.mktemp("run")
    train(folder)
    return folder


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"activation": "tanh"}, r"activation: relu, now tanh"),
        ({"rate": 0.3}, r"rate: 0\.2, now 0\.3"),
        ({"trainable": False}, r"trainable: True, now False"),
    ],
)
def test_another_architecture_is_refused(run, options, message):
    with pytest.raises(FileExistsError, match=message):
        train(run, network(**options))


def test_another_precision_is_refused(run):
    keras.config.set_dtype_policy("mixed_float16")
    message = r"dtype: float32, now mixed_float16"
    with pytest.raises(FileExistsError, match=message):
        train(run, network())


def test_other_data_of_the_same_size_are_refused(run):
    images, labels = ARRAYS
    for other in ((1 - images, labels), (images, labels[::-1]), (*ARRAYS, np.ones(12))):
        with pytest.raises(FileExistsError, match=r"data.*: .*, now "):
            train(run, data=other)


def test_other_weights_of_classes_are_refused(run):
    with pytest.raises(FileExistsError, match=r"class_weight\.1: nothing, now 1\.0"):
        train(run, class_weight={0: 1, 1: 1, 2: 2})


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"ratio": 1.4}, r"layers\.\d\.config\.sigma: 1\.3.*, now 1\.4"),
        ({"boundary": "symmetric"}, r"boundary: zero, now symmetric"),
        ({"scale_dropout": 0.2}, r"dropout: 0\.0, now 0\.2"),
        ({"receptive_field": None}, r"receptive_field: auto, now None"),
    ],
)
def test_another_scale_channel_is_refused(tmp_path, options, message):
    decided = {"architecture": architecture(gauss_der_network())}
    claim_folder(tmp_path, decided)
    claim_folder(tmp_path, {"architecture": architecture(gauss_der_network())})
    other = {"architecture": architecture(gauss_der_network(**options))}
    with pytest.raises(FileExistsError, match=message):
        claim_folder(tmp_path, other)


@pytest.mark.parametrize(
    "options",
    [{"scale_pooling": "average"}, {"scale_dropout": 0.2}, {"subpixel": True}],
)
def test_one_channel_serves_networks_of_many_kinds(options):
    """The first stage of one can be taken over by another."""

    def seen(sigma0, **options):
        return architecture(gauss_der_network(sigma0=sigma0, **options))

    assert seen((1.0,), **options) == seen((1.0,))
    assert seen((0.7, 1.4), **options) != seen((0.7, 1.4))


def test_frozen_layers_within_scale_channels_are_seen():
    one, other = gauss_der_network(), gauss_der_network()
    assert architecture(one) == architecture(other)
    other.get_layer("scale_channels").network.get_layer("stem_conv").trainable = False
    assert architecture(one) != architecture(other)


@pytest.mark.parametrize(
    "frozen",
    [
        lambda channel: channel.get_layer("block1").bn1,
        lambda channel: channel.get_layer("block1").conv2,
        lambda channel: channel.get_layer("stem_conv").kernel,
    ],
    ids=["normalization", "convolution", "weight"],
)
def test_frozen_parts_of_layers_are_seen(frozen):
    one, other = gauss_der_network(), gauss_der_network()
    assert parameters(one) == parameters(other)
    frozen(other.get_layer("scale_channels").network).trainable = False
    assert parameters(one) != parameters(other)


class Power(keras.layers.Layer):
    """A user's own layer, of which Keras knows no configuration."""

    def __init__(self, function):
        super().__init__()
        self.function = function

    def call(self, inputs):
        return self.function(inputs)


def test_the_rest_of_a_network_with_a_layer_of_ones_own_is_seen():
    def own(**options) -> keras.Model:
        channel = gauss_der_network(**options).get_layer("scale_channels").network
        image = keras.Input((16, 16, 1))
        inner = keras.Model(image, channel(Power(keras.ops.square)(image)))
        scores = ScaleChannels(inner, [1.0, 1.4], receptive_field=None)(image)
        return keras.Model(image, ScalePooling("max")(scores))

    assert architecture(own()) == architecture(own())
    assert architecture(own()) != architecture(own(ratio=1.4))


def test_another_backend_is_refused(run):
    decided = json.loads((run / "settings.json").read_text(encoding="utf-8"))
    claim_folder(run, decided)
    decided["backend"] = "another"
    with pytest.raises(FileExistsError, match=r"backend: .*, now another"):
        claim_folder(run, decided)


def test_how_layers_are_connected_is_seen():
    def crossed(swap: bool) -> keras.Model:
        image = keras.Input((4,))
        one = keras.layers.Dense(3)(image)
        other = keras.layers.Dense(3, activation="relu")(image)
        branches = [other, one] if swap else [one, other]
        return keras.Model(image, keras.layers.Subtract()(branches))

    assert architecture(crossed(False)) == architecture(crossed(False))
    assert architecture(crossed(False)) != architecture(crossed(True))


def test_the_order_of_layers_is_seen():
    def chain(*kinds: type) -> keras.Model:
        return keras.Sequential([keras.Input((4,)), *(kind() for kind in kinds)])

    one, other = keras.layers.ReLU, keras.layers.BatchNormalization
    assert architecture(chain(one, other)) == architecture(chain(one, other))
    assert architecture(chain(one, other)) != architecture(chain(other, one))


def test_long_lists_of_differences_are_cut(tmp_path):
    claim_folder(tmp_path, {f"name{n:02}": 0 for n in range(20)})
    with pytest.raises(FileExistsError, match=r"name07: 0, now 1\n  and 12 more$"):
        claim_folder(tmp_path, {f"name{n:02}": 1 for n in range(20)})


def test_rows_know_their_columns(tmp_path):
    """Validation data come and go between calls."""
    first = train(tmp_path).history
    second = train(tmp_path, validation_data=ARRAYS).history
    third = train(tmp_path).history
    assert {*third} == {*second} == {*first, "val_loss", "val_accuracy"}
    for name, values in first.items():
        assert third[name][0] == values[0]
    for name, values in second.items():
        assert third[name][1] == values[1]
    assert np.isnan(third["val_loss"]).tolist() == [True, False, True]
    assert np.all(np.isfinite(third["seconds"]))


def test_cells_may_be_empty_words_and_of_several_lines(tmp_path):
    rows = [
        {"epoch": 0, "loss": 1.5},
        {"epoch": 1, "phase": "late,\nlater", "loss": 0.5},
    ]
    write_log(tmp_path, rows)
    assert not list(tmp_path.iterdir())  # no log without a checkpoint
    (tmp_path / "epoch-0002.weights.h5").touch()
    write_log(tmp_path, rows)
    with open(tmp_path / "log.csv", newline="", encoding="utf-8") as file:
        assert list(csv.reader(file)) == [
            ["epoch", "loss", "phase"],
            ["0", "1.5", ""],
            ["1", "0.5", "late,\nlater"],
        ]
    found = history(rows)
    assert found.epoch == [0, 1]
    assert found.history["loss"] == [1.5, 0.5]
    assert np.isnan(found.history["phase"][0])


def test_the_log_is_that_of_the_checkpoint(tmp_path):
    """Whatever was done to it, or written after the checkpoint."""
    train(tmp_path)
    log = tmp_path / "log.csv"
    expected = log.read_text(encoding="utf-8")
    for content in (b"", b"epoch,loss\n\xff", expected.encode() + b"1,0.5\n"):
        log.write_bytes(content)
        with pytest.raises(KeyboardInterrupt):
            train(tmp_path, callbacks=[Interrupted()])
        assert log.read_text(encoding="utf-8") == expected
    log.unlink()
    assert train(tmp_path).epoch == [0, 1]
    assert len(log.read_text(encoding="utf-8").splitlines()) == 3


class Interrupted(keras.callbacks.Callback):
    def on_train_begin(self, logs=None):
        raise KeyboardInterrupt


def test_a_lost_checkpoint_does_not_begin_the_run_anew(tmp_path):
    train(tmp_path)
    train(tmp_path)
    (file,) = tmp_path.glob("*.h5")
    content = file.read_bytes()
    file.unlink()
    with pytest.raises(
        FileExistsError, match=r"has the log\.csv of a run, but its checkpoint is gone"
    ):
        train(tmp_path)
    file.write_bytes(content)
    assert train(tmp_path).epoch == [0, 1, 2]


def test_one_folder_is_of_one_process(tmp_path):
    with lock_folder(tmp_path), pytest.raises(BlockingIOError) as error:
        train(tmp_path)
    assert str(tmp_path) in str(error.value)
    assert "in use by another process" in str(error.value)
    assert not list(tmp_path.iterdir())
    train(tmp_path)
    train(tmp_path)  # the folder is free again after each


def test_a_file_system_without_locks(tmp_path, monkeypatch):
    def failing(lock, **options):
        raise OSError(errno.ENOLCK, "No locks available")

    monkeypatch.setattr(filelock.FileLock, "acquire", failing)
    entered = False
    with (
        pytest.warns(UserWarning, match=r"has no locks \(.*No locks available"),
        lock_folder(tmp_path),
    ):
        entered = True
    assert entered


def test_a_call_that_failed_does_not_keep_the_folder(tmp_path):
    train(tmp_path)
    with pytest.raises(FileExistsError):
        train(tmp_path, seed=1)
    with lock_folder(tmp_path):
        pass


@pytest.mark.skipif(not hasattr(os, "fork"), reason="processes of POSIX")
@pytest.mark.filterwarnings("ignore:.*fork:DeprecationWarning")
@pytest.mark.filterwarnings("ignore:os.fork.. was called:RuntimeWarning")
def test_a_forked_process_has_no_part_in_the_lock(tmp_path):
    """It neither sets the folder free, nor keeps it when the parent has been killed."""
    (reading, writing), (waiting, ending) = os.pipe(), os.pipe()
    held = contextlib.ExitStack()
    held.enter_context(lock_folder(tmp_path))
    child = os.fork()
    if not child:
        with contextlib.suppress(BaseException):
            held.close()
        os.write(writing, b"done")
        os.read(waiting, 1)
        os._exit(0)
    assert os.read(reading, 4) == b"done"
    with pytest.raises(BlockingIOError), lock_folder(tmp_path):
        pass
    held.close()
    with lock_folder(tmp_path):  # though the child is alive
        pass
    os.write(ending, b"!")
    os.waitpid(child, 0)
    for end in (reading, writing, waiting, ending):
        os.close(end)


def test_a_flipped_bit_is_found(tmp_path):
    train(tmp_path)
    (file,) = tmp_path.glob("*.h5")
    content = bytearray(file.read_bytes())
    for position in (0, len(content) // 2, len(content) - 1):
        damaged = content.copy()
        damaged[position] ^= 4
        file.write_bytes(damaged)
        with pytest.raises(OSError, match=r"epoch-0001\.weights\.h5 is damaged"):
            train(tmp_path)
    file.write_bytes(content[: len(content) // 2])
    with pytest.raises(OSError, match="Copy it back from a backup, or train anew"):
        train(tmp_path)
    file.write_bytes(content)
    assert train(tmp_path).epoch == [0, 1]


def test_a_checkpoint_of_another_run_is_refused(run, tmp_path):
    train(tmp_path, seed=1)
    (file,) = run.glob("*.h5")
    (tmp_path / file.name).write_bytes(file.read_bytes())
    with pytest.raises(OSError, match=r"epoch-0001\.weights\.h5 is .* of another run"):
        train(tmp_path, seed=1)


def test_a_full_disk_is_found_before_a_checkpoint_is_written(tmp_path, monkeypatch):
    train(tmp_path)
    usage = shutil._ntuple_diskusage(1, 1, 10**4)
    with monkeypatch.context() as patch:
        patch.setattr(shutil, "disk_usage", lambda folder: usage)
        with pytest.raises(OSError, match="No space left for a checkpoint") as error:
            train(tmp_path)
    assert error.value.errno == errno.ENOSPC
    assert train(tmp_path).epoch == [0, 1]


def test_keras_loads_checkpoints(run):
    (file,) = run.glob("*.h5")
    network().load_weights(file, skip_mismatch=False)


@pytest.mark.parametrize(
    "content",
    [b"", b"{", b"\xff\xfe\x00", b"[1, 2]", b'"settings"', b"NaN", b"[" * 100_000],
)
def test_foreign_settings(tmp_path, content):
    train(tmp_path)
    (tmp_path / "settings.json").write_bytes(content)
    message = r"settings\.json must be the settings of a run.*choose another folder"
    with pytest.raises(FileExistsError, match=message):
        train(tmp_path)


def test_checkpoints_of_others_are_left_alone(tmp_path):
    train(tmp_path)
    own = tmp_path / "epoch-best.weights.h5"
    own.write_bytes(b"of a callback")
    assert train(tmp_path).epoch == [0, 1]
    assert own.read_bytes() == b"of a callback"


class Poison(keras.callbacks.Callback):
    """Makes a weight NaN: before an epoch, so that its loss is, or in its end."""

    def __init__(self, epoch, at_end=False):
        super().__init__()
        self.epoch, self.at_end = epoch, at_end

    def on_epoch_begin(self, epoch, logs=None):
        self.now = epoch
        if epoch == self.epoch and not self.at_end:
            self.spoil()

    def on_train_batch_end(self, batch, logs=None):
        if self.now == self.epoch and self.at_end and batch == 1:
            self.spoil()

    def spoil(self):
        weight = self.model.trainable_variables[-1]
        weight.assign(keras.ops.full_like(weight, float("nan")))


@pytest.mark.skipif(
    keras.backend.backend() != "tensorflow", reason="JAX keeps weights to itself"
)
@pytest.mark.parametrize("at_end", [False, True], ids=["loss", "weight"])
def test_a_loss_that_is_not_finite_stops_the_run(tmp_path, at_end):
    poison = Poison(1, at_end)
    with pytest.raises(FloatingPointError, match=r"not finite in epoch 2.*last good"):
        train(tmp_path, epochs_now=3, callbacks=[poison])
    assert [path.name for path in tmp_path.glob("*.h5")] == ["epoch-0001.weights.h5"]
    expected = network()
    fit(expected, RECIPE, ARRAYS, verbose=0)
    resumed = network()
    assert train(tmp_path, resumed, epochs_now=3).epoch == [0, 1, 2]
    for one, other in zip(resumed.get_weights(), expected.get_weights(), strict=True):
        np.testing.assert_array_equal(one, other)


@pytest.mark.skipif(
    keras.backend.backend() != "tensorflow", reason="JAX keeps weights to itself"
)
def test_it_goes_on_if_it_is_told_to(tmp_path):
    options = {"callbacks": [Poison(1)], "check_finite": False}
    history = train(tmp_path, epochs_now=3, **options)
    assert np.isfinite(history.history["loss"]).tolist() == [True, False, False]
    assert [path.name for path in tmp_path.glob("*.h5")] == ["epoch-0001.weights.h5"]
    assert json.loads((tmp_path / "settings.json").read_text(encoding="utf-8"))
