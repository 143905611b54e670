"""The folder of a run: what it refuses, who may use it, and what is damaged."""

import errno
import json
import shutil
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import filelock
import keras
import numpy as np
import pytest

from keras_gdrn.models import gauss_der_resnet
from keras_gdrn.training import Recipe, claim_folder, fit, lock_folder
from keras_gdrn.training._model import architecture
from tests.training._small import assert_same_weights

pytestmark = pytest.mark.usefixtures("step_by_step")

RNG = np.random.default_rng(0)
IMAGES, LABELS = ARRAYS = (RNG.random((12, 16, 16, 1), "float32"), np.arange(12) % 3)
RECIPE = Recipe(epochs=3, batch_size=6)
CHECKPOINT = "checkpoint.weights.h5"


def network(**options) -> keras.Model:
    """A plain network, of which each option changes nothing but itself."""
    keras.utils.set_random_seed(0)
    given = {"activation": "relu", "rate": 0.2, "trainable": True, **options}
    rate = given.pop("rate")
    return keras.Sequential(
        [
            keras.Input((16, 16, 1)),
            keras.layers.Conv2D(2, 3, strides=4, **given),
            keras.layers.Dropout(rate),
            keras.layers.Flatten(),
            keras.layers.Dense(3, dtype="float32"),
        ]
    )


def train(out, model=None, data=ARRAYS, epochs_now=1, **options):
    """Trains for an epoch, or for some."""
    minutes = 0 if epochs_now == 1 else None
    options = {"recipe": RECIPE, "max_minutes": minutes, "verbose": 0, **options}
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


def functional() -> keras.Model:
    image = keras.Input((16, 16, 1))
    return keras.Model(image, network()(image))


def frozen() -> keras.Model:
    """Within a layer, whose configuration does not tell."""
    model = network()
    model.layers[0].kernel.trainable = False
    return model


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (lambda: {"model": network(activation="tanh")}, r"activation: relu, now tanh"),
        (lambda: {"model": network(rate=0.3)}, r"rate: 0\.2, now 0\.3"),
        (lambda: {"model": network(trainable=False)}, r"trainable: True, now False"),
        (lambda: {"model": frozen()}, r"weights\.0: .*True, now .*False"),
        (lambda: {"model": functional()}, r"class_name: Sequential, now Functional"),
        (lambda: {"data": (1 - IMAGES, LABELS)}, r"data\.0: .*, now "),
        (lambda: {"data": (IMAGES, LABELS[::-1])}, r"data\.1: .*, now "),
        (lambda: {"data": (*ARRAYS, np.ones(12))}, r"data\.2: nothing, now "),
        (lambda: {"class_weight": {1: 2}}, r"class_weight\.1: nothing, now 2\.0"),
        (lambda: {"seed": 1}, r"other settings(.|\n)*seed: 0, now 1"),
        (lambda: {"recipe": Recipe(4, 6)}, r"epochs: 3, now 4"),
    ],
)
def test_other_settings_are_refused(trained, options, message):
    with pytest.raises(FileExistsError, match=message):
        train(trained, **options())


def test_another_precision_or_backend_is_refused(trained):
    decided = json.loads((trained / "settings.json").read_text(encoding="utf-8"))
    claim_folder(trained, decided)
    with pytest.raises(FileExistsError, match=r"backend: .*, now another"):
        claim_folder(trained, decided | {"backend": "another"})
    keras.config.set_dtype_policy("mixed_float16")
    with pytest.raises(FileExistsError, match=r"name: float32, now mixed_float16"):
        train(trained)


def seen(sigma0=(1.0, 1.4), **options) -> dict:
    """What a folder knows of a network, whatever names Keras gives."""
    options = {"ratio": 1.3, "boundary": "zero", **options}
    network = gauss_der_resnet((16, 16, 1), 3, (2, 2), sigma0=sigma0, **options)
    return {"model": architecture(network)}


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
    for _ in range(2):
        claim_folder(tmp_path, seen())
    with pytest.raises(FileExistsError, match=message):
        claim_folder(tmp_path, seen(**options))


@pytest.mark.parametrize(
    "options",
    [{"scale_pooling": "average"}, {"scale_dropout": 0.2}, {"subpixel": True}],
)
def test_one_channel_serves_networks_of_many_kinds(options):
    """The first stage of one can be taken over by another."""
    assert seen((1.0,), **options) == seen((1.0,))
    assert seen((0.7, 1.4), **options) != seen((0.7, 1.4))


def crossed(swap: bool) -> keras.Model:
    """How layers are connected matters."""
    image = keras.Input((4,))
    one = keras.layers.Dense(3)(image)
    other = keras.layers.Dense(3, activation="relu")(image)
    branches = [other, one] if swap else [one, other]
    return keras.Model(image, keras.layers.Subtract()(branches))


class Power(keras.layers.Layer):
    """A user's own layer, of which Keras knows no configuration."""

    def __init__(self, function):
        super().__init__()
        self.function = function

    def call(self, inputs):
        return self.function(inputs)


def own(*kinds: str) -> keras.Model:
    layers = [getattr(keras.layers, kind)() for kind in kinds]
    return keras.Sequential([keras.Input((4,)), Power(keras.ops.square), *layers])


@pytest.mark.parametrize(
    ("build", "one", "other"),
    [(crossed, [False], [True]), (own, ["ReLU", "Flatten"], ["Flatten", "ReLU"])],
)
def test_structures_are_told_apart(build, one, other):
    assert architecture(build(*one)) == architecture(build(*one))
    assert architecture(build(*one)) != architecture(build(*other))


def test_long_lists_of_differences_are_cut(tmp_path):
    claim_folder(tmp_path, {f"name{n:02}": 0 for n in range(20)})
    with pytest.raises(FileExistsError, match=r"name07: 0, now 1\n  and 12 more$"):
        claim_folder(tmp_path, {f"name{n:02}": 1 for n in range(20)})


def test_rows_know_their_columns(run):
    """Validation data come and go between calls."""
    first = train(run, validation_data=ARRAYS).history
    found = train(run).history
    assert {*found} == {"loss", "accuracy", "seconds", "val_loss", "val_accuracy"}
    assert found["loss"][:2] == first["loss"]
    assert np.isnan(found["val_loss"]).tolist() == [True, False, True]


class Interrupted(keras.callbacks.Callback):
    def on_train_begin(self, logs=None):
        raise KeyboardInterrupt


def test_the_log_is_that_of_the_checkpoint(run):
    """Whatever was done to it, or written after the checkpoint."""
    log = run / "log.csv"
    expected = log.read_text(encoding="utf-8")
    for content in (b"", b"epoch,loss\n\xff", expected.encode() + b"1,0.5\n"):
        log.write_bytes(content)
        with pytest.raises(KeyboardInterrupt):
            train(run, callbacks=[Interrupted()])
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


def test_lost_files_do_not_begin_the_run_anew(run):
    for name, message in (
        (CHECKPOINT, r"has the log\.csv of a run, but its checkpoint is gone"),
        ("settings.json", "files that are not of such a run"),
    ):
        (run / name).rename(run.parent / name)
        with pytest.raises(FileExistsError, match=message):
            train(run)
        (run.parent / name).rename(run / name)
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


def test_a_damaged_checkpoint_is_told(run, tmp_path):
    file = run / CHECKPOINT
    content = file.read_bytes()
    damaged = [content[: len(content) // 2], b""]
    for n in (0, len(content) // 2, len(content) - 1):
        damaged.append(content[:n] + bytes([content[n] ^ 4]) + content[n + 1 :])
    train(tmp_path / "other", seed=1)
    damaged.append((tmp_path / "other" / CHECKPOINT).read_bytes())  # of another run
    for wrong in damaged:
        file.write_bytes(wrong)
        message = r"checkpoint\.weights\.h5 is damaged or of another run.*from a backup"
        with pytest.raises(OSError, match=message):
            train(run)
    file.write_bytes(content)
    assert train(run).epoch == [0, 1]


def test_a_full_disk_is_told_and_nothing_lost(run, monkeypatch):
    usage = shutil._ntuple_diskusage(1, 1, 10**4)
    with monkeypatch.context() as patch:
        patch.setattr(shutil, "disk_usage", lambda folder: usage)
        with pytest.raises(OSError, match="No space left for a checkpoint") as error:
            train(run)
    assert error.value.errno == errno.ENOSPC
    assert train(run).epoch == [0, 1]


def test_keras_loads_checkpoints(trained):
    network().load_weights(trained / CHECKPOINT, skip_mismatch=False)


@pytest.mark.parametrize("content", [b"", b"{", b"\xff\xfe\x00"])
def test_foreign_settings(tmp_path, content):
    (tmp_path / "settings.json").write_bytes(content)
    message = r"settings\.json must be the settings of a run.*choose another folder"
    with pytest.raises(FileExistsError, match=message):
        claim_folder(tmp_path, {})


class Poison(keras.callbacks.Callback):
    """Makes a weight NaN in the second epoch, before a batch or after the last one."""

    def __init__(self, at_end=False):
        super().__init__()
        self.at_end = at_end

    def on_epoch_begin(self, epoch, logs=None):
        self.now = epoch

    def on_train_batch_begin(self, batch, logs=None):
        self.spoil(not self.at_end)

    def on_train_batch_end(self, batch, logs=None):
        self.spoil(self.at_end and batch == 1)

    def spoil(self, is_time):
        weight = self.model.trainable_variables[-1]
        if self.now == 1 and is_time:
            weight.assign(keras.ops.full_like(weight, float("nan")))


on_tensorflow = pytest.mark.skipif(
    keras.backend.backend() != "tensorflow", reason="JAX keeps weights to itself"
)


@on_tensorflow
@pytest.mark.parametrize("at_end", [False, True], ids=["loss", "weight"])
def test_a_loss_that_is_not_finite_stops_the_run(tmp_path, at_end):
    with pytest.raises(FloatingPointError, match=r"not finite in epoch 2.*last good"):
        train(tmp_path, epochs_now=3, callbacks=Poison(at_end))
    expected, resumed = network(), network()
    fit(expected, RECIPE, ARRAYS, verbose=0)
    assert train(tmp_path, resumed, epochs_now=3).epoch == [0, 1, 2]
    assert_same_weights(resumed, expected)


@on_tensorflow
def test_it_goes_on_if_it_is_told_to(tmp_path):
    options = {"callbacks": [Poison()], "check_finite": False}
    found = train(tmp_path, epochs_now=3, **options).history
    assert np.isfinite(found["loss"]).tolist() == [True, False, False]
    assert train(tmp_path).epoch == [0, 1]  # from the checkpoint of the first
