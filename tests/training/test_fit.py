"""Training by a recipe: that it learns, and that it goes on from anywhere."""

import csv
import dataclasses
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import keras
import numpy as np
import pytest

from keras_gdrn.data import rescaled, rescaled_arrays
from keras_gdrn.models import gauss_der_resnet
from keras_gdrn.training import Augmentation, Recipe, TimeLimit, fit
from tests._cases import cases

RECIPE = Recipe(
    epochs=3,
    batch_size=16,
    augmentation=Augmentation(padding=1, flip=0.5, brightness=0.2),
)
ARRAYS = rescaled_arrays("digits", "train", canvas=24, limit=60)


def gauss_der_network(seed=0, **options) -> keras.Model:
    keras.utils.set_random_seed(seed)
    return gauss_der_resnet(
        *((24, 24, 1), 10, (4, 4), 1.4),
        **{"sigma0": (0.7, 1.4), "scale_dropout": 0.3, **options},
    )


def network(seed=0) -> keras.Model:
    """A plain network with all that keeps a state, for it is traced in no time."""
    keras.utils.set_random_seed(seed)
    return keras.Sequential(
        [
            keras.Input((24, 24, 1)),
            keras.layers.Conv2D(4, 3, strides=2),
            keras.layers.BatchNormalization(),
            keras.layers.Dropout(0.3),
            keras.layers.Flatten(),
            keras.layers.Dense(10),
        ]
    )


def digits(**options):
    return rescaled(
        "digits",
        "train",
        **{"canvas": 24, "limit": 60, "batch_size": 16, "shuffle": True, **options},
    )


def rows(folder):
    with open(folder / "log.csv", newline="", encoding="utf-8") as file:
        return list(csv.DictReader(file))


class StopAt(keras.callbacks.Callback):
    """Ends training as an interruption would, within an epoch or after one."""

    def __init__(self, epoch, batch=None):
        super().__init__()
        self.epoch, self.batch, self.now = epoch, batch, 0

    def on_epoch_begin(self, epoch, logs=None):
        self.now = epoch

    def on_train_batch_end(self, batch, logs=None):
        if (self.now, batch) == (self.epoch, self.batch):
            raise KeyboardInterrupt


def assert_same_weights(one, other):
    for a, b in zip(one.get_weights(), other.get_weights(), strict=True):
        np.testing.assert_array_equal(a, b)


class Items:
    """Images that are read by number, as PyTorch and grain have them."""

    def __len__(self):
        return 60

    def __getitem__(self, number):
        return ARRAYS[0][number], ARRAYS[1][number]


@pytest.mark.slow
@pytest.mark.parametrize("minutes", [10, 0], ids=["by epoch", "by step"])
@pytest.mark.parametrize(
    ("network", "data", "interruptions"),
    [
        (network, digits, [(0, 1), (1, 2), (2, 0)]),
        (network, lambda: ARRAYS, [(0, 1), (0, 2), (2, 0), (2, 2)]),
        (network, Items, [(1, 2)]),
        (gauss_der_network, digits, [(1, 2)]),  # which is traced in no short time
    ],
    ids=["dataset", "arrays", "items", "gauss_der_resnet"],
)
def test_interrupted_runs_have_the_same_result(
    tmp_path, network, data, interruptions, minutes
):
    options = {"checkpoint_minutes": minutes, "verbose": 0}
    whole = network()
    history = fit(whole, RECIPE, data(), verbose=0).history
    for epoch, batch in interruptions:
        options["callbacks"] = StopAt(epoch, batch)
        with pytest.raises(KeyboardInterrupt):
            fit(network(), RECIPE, data(), out=tmp_path, **options)
        (file,) = tmp_path.glob("*.h5") if epoch or not minutes else (tmp_path,)
        assert ("step" in file.name) == (not minutes and batch > 0)
    resumed = network(seed=1)  # the weights are those of the checkpoint
    found = fit(resumed, RECIPE, data(), out=tmp_path, verbose=0)
    assert_same_weights(resumed, whole)
    assert found.epoch == [0, 1, 2]
    np.testing.assert_allclose(found.history["loss"], history["loss"], rtol=1e-6)


def test_checks_above_can_fail(tmp_path):
    whole, other = network(), network()
    fit(whole, RECIPE, ARRAYS, verbose=0)
    fit(other, RECIPE, ARRAYS, seed=1, verbose=0)
    with pytest.raises(AssertionError):
        assert_same_weights(other, whole)


def test_complete_runs_are_not_trained_again(tmp_path):
    model = network()
    fit(model, RECIPE, ARRAYS, out=tmp_path, verbose=0)
    again = network(seed=1)
    start = StopAt(0, 0)
    found = fit(again, RECIPE, ARRAYS, out=tmp_path, callbacks=[start], verbose=0)
    assert_same_weights(again, model)
    assert found.epoch == [0, 1, 2]
    assert [path.name for path in tmp_path.glob("*.h5")] == ["epoch-0003.weights.h5"]


@pytest.mark.parametrize("rest", cases(["", "2,0.5", "2,0.5,1.0,3.0\n"], ["2,0.5"]))
@pytest.mark.usefixtures("step_by_step")
def test_rows_after_the_checkpoint_are_dropped(tmp_path, rest):
    with pytest.raises(KeyboardInterrupt):
        stop = [StopAt(2, 0)]
        fit(network(), RECIPE, ARRAYS, out=tmp_path, callbacks=stop, verbose=0)
    with open(tmp_path / "log.csv", "a", encoding="utf-8") as file:
        file.write(rest)
    fit(network(), RECIPE, ARRAYS, out=tmp_path, verbose=0)
    assert [row["epoch"] for row in rows(tmp_path)] == ["0", "1", "2"]


@pytest.mark.usefixtures("step_by_step")
def test_a_checkpoint_is_there_at_any_moment(tmp_path, monkeypatch):
    stop = [StopAt(1, 0)]
    with pytest.raises(KeyboardInterrupt):
        fit(network(), RECIPE, ARRAYS, out=tmp_path, callbacks=stop, verbose=0)

    def save_a_part(model, path, **options):
        Path(path).write_bytes(b"a part")
        raise KeyboardInterrupt

    with monkeypatch.context() as patch, pytest.raises(KeyboardInterrupt):
        patch.setattr(keras.Model, "save_weights", save_a_part)
        fit(network(), RECIPE, ARRAYS, out=tmp_path, verbose=0)
    found = fit(network(), RECIPE, ARRAYS, out=tmp_path, verbose=0)
    assert found.epoch == [0, 1, 2]


_SCRIPT = """
import sys
from pathlib import Path
from tests.training.test_fit import ARRAYS, RECIPE, network
from keras_gdrn.training import fit
fit(network(), RECIPE, ARRAYS, out=Path(sys.argv[1]), checkpoint_minutes=0, verbose=2)
"""


@pytest.mark.slow
@pytest.mark.seen_on_tensorflow("the files are the same")
def test_killed_twice(tmp_path):
    root = Path(__file__).parents[2]
    command = [sys.executable, "-c", _SCRIPT, str(tmp_path)]
    environment = {**os.environ, "PYTHONPATH": str(root)}
    for pattern in ("epoch-0000-step-*", "epoch-000[12]*"):
        process = subprocess.Popen(command, env=environment, stdout=subprocess.DEVNULL)
        while process.poll() is None and not list(tmp_path.glob(pattern)):
            time.sleep(0.002)
        process.send_signal(signal.SIGKILL)
        assert process.wait() == -signal.SIGKILL
        assert list(tmp_path.glob("epoch*"))
    whole, resumed = network(), network(seed=1)
    fit(whole, RECIPE, ARRAYS, verbose=0)
    fit(resumed, RECIPE, ARRAYS, out=tmp_path, verbose=0)
    assert [row["epoch"] for row in rows(tmp_path)] == ["0", "1", "2"]
    assert_same_weights(resumed, whole)


@pytest.mark.usefixtures("step_by_step")
def test_time_is_limited_and_the_same_call_goes_on(tmp_path):
    for epochs in (1, 2, 3):
        found = fit(network(), RECIPE, ARRAYS, out=tmp_path, max_minutes=0, verbose=0)
        assert len(found.epoch) == epochs


@pytest.mark.slow
def test_data_made_once_serve_several_calls(tmp_path):
    whole, resumed = network(), network()
    fit(whole, RECIPE, digits(), verbose=0)
    data = digits()
    for model in (network(), network(), resumed):
        fit(model, RECIPE, data, out=tmp_path, max_minutes=0, verbose=0)
    assert_same_weights(resumed, whole)


@pytest.mark.usefixtures("step_by_step")
def test_calls_share_a_time_limit(tmp_path):
    limit = TimeLimit(minutes=0)
    for folder in ("one", "other"):  # there is time for an epoch of each
        out = tmp_path / folder
        found = fit(network(), RECIPE, ARRAYS, out=out, max_minutes=limit, verbose=0)
        assert len(found.epoch) == 1
    assert limit.is_reached(0)
    limit = TimeLimit(minutes=60)
    found = fit(network(), RECIPE, ARRAYS, max_minutes=limit, verbose=0)
    assert len(found.epoch) == 3
    assert limit.longest == pytest.approx(max(found.history["seconds"]), abs=0.1)


@pytest.mark.skipif(
    keras.backend.backend() != "tensorflow", reason="TensorFlow traces twice"
)
def test_a_step_is_traced_once(monkeypatch):
    """Twice, if a variable is made in it: `compile` leaves some to the first step."""
    traced, step = [], keras.Sequential.train_step

    def train_step(model, data):
        traced.append(data)
        return step(model, data)

    monkeypatch.setattr(keras.Sequential, "train_step", train_step)
    model = network()
    fit(model, RECIPE, ARRAYS, validation_data=ARRAYS, verbose=0)
    assert len(traced) == 1
    model.compile("adamw", "categorical_crossentropy", metrics=["accuracy"])
    model.fit(ARRAYS[0], keras.ops.one_hot(ARRAYS[1], 10), verbose=0)
    assert len(traced) == 1 + 2


@pytest.mark.slow
def test_it_learns():
    data = digits(limit=300)
    model = gauss_der_network(sigma0=(1.0,), scale_dropout=0.0)
    history = fit(model, Recipe(12, 16), data, verbose=0).history
    assert history["loss"][-1] < 0.75 * history["loss"][0]
    assert history["accuracy"][-1] > 0.7


def test_validation_and_both_logs(tmp_path):
    validation = digits(batch_size=25, shuffle=False)
    history = fit(
        network(),
        RECIPE,
        digits(),
        validation_data=validation,
        out=tmp_path,
        tensorboard=True,
        verbose=0,
    ).history
    names = {"loss", "accuracy", "seconds", "val_loss", "val_accuracy"}
    assert {name: len(values) for name, values in history.items()} == dict.fromkeys(
        names, 3
    )
    assert list((tmp_path / "tensorboard").rglob("events*"))


def test_mixed_precision_and_compilation():
    keras.config.set_dtype_policy("mixed_bfloat16")
    model = gauss_der_network(sigma0=(1.0,))
    history = fit(model, RECIPE, ARRAYS, jit_compile=True, verbose=0).history
    assert np.all(np.isfinite(history["loss"]))
    assert model.layers[1].network.get_layer("stem_conv").compute_dtype == "bfloat16"


@pytest.mark.usefixtures("step_by_step")
def test_another_run_is_not_overwritten(tmp_path):
    fit(network(), RECIPE, ARRAYS, out=tmp_path, max_minutes=0, verbose=0)
    with pytest.raises(FileExistsError, match=r"other settings(.|\n)*seed: 0, now 1"):
        fit(network(), RECIPE, ARRAYS, out=tmp_path, seed=1, verbose=0)
    with pytest.raises(
        FileExistsError, match=r"class_name: Sequential, now Functional"
    ):
        fit(gauss_der_network(), RECIPE, ARRAYS, out=tmp_path, verbose=0)
    (tmp_path / "settings.json").unlink()
    with pytest.raises(FileExistsError, match="files that are not of such a run"):
        fit(network(), RECIPE, ARRAYS, out=tmp_path, verbose=0)


@pytest.mark.parametrize(
    ("data", "message"),
    [
        ([ARRAYS], "`data` must be arrays"),
        (list(ARRAYS), r"as a tuple.*use `model.fit`. Received: a list of 2"),
        (ARRAYS[0], r"`data` must be arrays.*use `model.fit`. Received: a ndarray"),
        ((ARRAYS[0], ARRAYS[1][:-1]), "as many labels as images"),
        ((*ARRAYS, np.ones(3)), "as many weights as images"),
        ((ARRAYS[0], ARRAYS[1].astype(str)), r"number their names.*return_inverse"),
        ((ARRAYS[0], np.eye(7)[ARRAYS[1] % 7]), r"one-hot \(N, 10\).*`model.fit`"),
        ((ARRAYS[0][..., 0], ARRAYS[1]), r"images \(N, H, W, C\).*use `model.fit`"),
        ((ARRAYS[0], ARRAYS[1].astype(object)), "labels of type object, such as [0-9]"),
        ((ARRAYS[0], None), "images .*use `model.fit`"),
        ((*ARRAYS, ARRAYS[1].astype(str)), "Weights .* of numbers. Received: .*<U"),
        ((ARRAYS[0][:, :12], ARRAYS[1]), r"`data` .* \(24, 24, 1\).*\(12, 24, 1\)"),
        (digits(canvas=12), r"`data` .* \(24, 24, 1\). Received: .*\(12, 12, 1\)"),
        (digits().map(lambda x, y: ({"image": x}, y)), "images .*`model.fit`.*'image'"),
        (digits().map(lambda x, y: ((x,), y)), "images .*use `model.fit`"),
        (digits().map(lambda x, y: (x, {"label": y})), "images .*use `model.fit`"),
        (digits().repeat(), "known, finite number of batches"),
        (digits(batch_size=8).map(lambda x, y: (x, y)), "size, 16. .* a batch of 8"),
    ],
)
def test_unfit_data(data, message):
    with pytest.raises(ValueError, match=message):
        fit(network(), RECIPE, data)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"recipe": "cifar"}, r"one of \[.*'rescaled_cifar10',.*recipe='cifar'"),
        ({"recipe": 3}, r"must be a `Recipe` or one of \[.*recipe=3"),
        ({"seed": -1}, "`seed` must be an integer >= 0. Received: seed=-1"),
        ({"seed": 1.5}, "`seed` must be an integer >= 0. Received: seed=1.5"),
        ({"validation_data": digits(canvas=12)}, r"`validation_data` .*\(12, 12, 1\)"),
        ({"validation_data": (ARRAYS[0], ARRAYS[1] + 1)}, r"10 classes.*: \[10\b"),
    ],
)
def test_unfit_arguments(options, message):
    with pytest.raises(ValueError, match=message):
        fit(network(), **{"recipe": RECIPE, "data": ARRAYS, **options})


@pytest.mark.parametrize("row", [[2.0, -1.0], [0.5, 0.0]])
def test_one_hot_labels_are_shares(row):
    labels = np.eye(10)[ARRAYS[1]]
    labels[3] = [*row, *[0.0] * 8]
    with pytest.raises(ValueError, match="must be shares that add up to 1"):
        fit(network(), RECIPE, (ARRAYS[0], labels), verbose=0)


def test_labels_beyond_the_classes():
    images, labels = ARRAYS
    with pytest.raises(ValueError, match=r"must number the 10 classes.*: \[10\b"):
        fit(network(), RECIPE, (images, labels + 1), verbose=0)


def test_unfit_models():
    with pytest.raises(ValueError, match=r"`model` must be .* to scores .*`model.fit`"):
        image = keras.Input((24, 24, 1))
        fit(keras.Model(image, keras.layers.ReLU()(image)), RECIPE, ARRAYS)
    with pytest.raises(ValueError, match=r"`max_minutes` must be .* max_minutes=-1"):
        fit(network(), RECIPE, ARRAYS, max_minutes=-1)


@pytest.mark.parametrize("kind", ["subclassed", "unbuilt", "two inputs"])
def test_models_of_another_kind(kind):
    class Own(keras.Model):
        def call(self, images):
            return images[:, 0, :10, 0]

    model = Own()
    if kind == "unbuilt":
        model = keras.Sequential([keras.layers.Flatten(), keras.layers.Dense(10)])
    elif kind == "two inputs":
        images = [keras.Input((24, 24, 1)), keras.Input((24, 24, 1))]
        model = keras.Model(images, Own()(images[0]))
    with pytest.raises(ValueError, match=r"`model` .*keras.Input\(.*`model.fit`"):
        fit(model, RECIPE, ARRAYS)


def whole_history(model, data, recipe=None, **options):
    return fit(model, recipe or Recipe(2, 16), data, verbose=0, **options).history


@pytest.mark.usefixtures("step_by_step")
def test_kinds_of_labels_are_the_same_training():
    images, labels = ARRAYS
    expected, one_hot = network(), np.eye(10)[labels]
    whole_history(expected, ARRAYS)
    for given in (labels[:, None], labels.astype("float64"), one_hot, one_hot > 0):
        model = network()
        whole_history(model, (images, given))
        assert_same_weights(model, expected)


def test_recipes_have_names(monkeypatch):
    class Fitted(Exception):
        pass

    def fitted(model, data, **options):
        raise Fitted(options["epochs"])

    monkeypatch.setattr(keras.Model, "fit", fitted)
    with pytest.raises(Fitted, match=r"^32$"):
        fit(network(), "rescaled_fashion_mnist", ARRAYS)


@pytest.mark.usefixtures("step_by_step")
def test_images_of_weight_zero_are_not_trained_on():
    images, labels = ARRAYS
    weights = np.repeat([1.0, 0.0], 30)
    wrong = np.where(weights > 0, labels, (labels + 1) % 10)
    one, other = network(), network()
    history = whole_history(one, (images, labels, weights), Recipe(3, 60))
    found = whole_history(other, (images, wrong, weights), Recipe(3, 60))
    assert_same_weights(one, other)
    assert history["accuracy"] == found["accuracy"]
    with pytest.raises(AssertionError):
        other = network()
        whole_history(other, (images, wrong), Recipe(3, 60))
        assert_same_weights(one, other)


@pytest.mark.usefixtures("step_by_step")
def test_weights_of_classes_are_weights_of_their_images():
    images, labels = ARRAYS
    of_class = {number: 1.0 + number for number in range(10)}
    one, other = network(), network()
    whole_history(one, ARRAYS, class_weight=of_class)
    whole_history(other, (images, labels, 1.0 + labels))
    for a, b in zip(one.get_weights(), other.get_weights(), strict=True):
        np.testing.assert_allclose(a, b, rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize("shape", [(-1,), (-1, 1)])
def test_networks_with_one_output(shape):
    images, labels = ARRAYS
    image = keras.Input((24, 24, 1))
    model = keras.Sequential([image, keras.layers.Flatten(), keras.layers.Dense(1)])
    is_round = np.isin(labels, [0, 6, 8, 9]).astype("int32")
    recipe = Recipe(20, 60, label_smoothing=0.0)
    data = (images, is_round.reshape(shape))
    history = whole_history(model, data, recipe, validation_data=data)
    scores = np.asarray(model(images))[:, 0]
    assert history["val_accuracy"][-1] == pytest.approx(
        np.mean((scores > 0) == is_round), abs=1e-6
    )
    loss = np.logaddexp(0, np.where(is_round == 1, -scores, scores)).mean()
    assert history["val_loss"][-1] == pytest.approx(loss, rel=1e-5)
    assert history["val_accuracy"][-1] > 0.9


@pytest.mark.parametrize(
    "images",
    [
        (255 * ARRAYS[0]).astype("uint8"),
        255 * ARRAYS[0],
        16 * ARRAYS[0].astype("float64"),  # as scikit-learn has its digits
        np.full_like(ARRAYS[0], np.nan),
    ],
    ids=["bytes", "0 to 255", "0 to 16", "nan"],
)
def test_images_that_are_not_in_0_to_1(images):
    labels = ARRAYS[1]
    with pytest.raises(ValueError, match=r"divide .* by 255 \(`.* / 255`\). Received"):
        fit(network(), RECIPE, (images, labels))
    with pytest.raises(ValueError, match=r"divide .* by 255 \(`.* / 255`\). Received"):
        fit(network(), RECIPE, ARRAYS, validation_data=(images, labels))


def test_images_of_any_float_are_taken():
    images, labels = ARRAYS
    expected = network()
    whole_history(expected, ARRAYS)
    model = network()
    whole_history(model, (images.astype("longdouble"), labels))
    assert_same_weights(model, expected)


class Sequence(keras.utils.PyDataset):
    def __len__(self):
        return 4

    def __getitem__(self, number):
        return tuple(part[16 * number : 16 * number + 16] for part in ARRAYS)


class Loader:
    """An iterable with a length, such as PyTorch's `DataLoader`."""

    def __len__(self):
        return 4

    def __iter__(self):
        batches = Sequence()
        return (batches[number] for number in range(4))


def generated():
    """A `tf.data.Dataset` that tells no sizes, as generators and decoders make it."""
    import tensorflow as tf

    unknown = tf.TensorSpec((None, None, None, None)), tf.TensorSpec((None,), "int64")
    data = tf.data.Dataset.from_generator(Loader().__iter__, output_signature=unknown)
    return data.apply(tf.data.experimental.assert_cardinality(4))


@pytest.mark.slow
@pytest.mark.usefixtures("step_by_step")
def test_batches_that_are_made_elsewhere(tmp_path):
    """In their order, which is the same in each epoch here; augmented by the step."""
    expected, recipe = network(), dataclasses.replace(RECIPE, epochs=2)
    in_order = fit(expected, recipe, Loader(), validation_data=Loader(), verbose=0)
    for made in (Sequence, Loader, generated):
        out = tmp_path / made.__name__
        options = {"validation_data": made(), "out": out, "verbose": 0}
        with pytest.raises(KeyboardInterrupt):
            stop = StopAt(1, 2)
            fit(
                *(network(), recipe, made()),
                **{"callbacks": stop, "checkpoint_minutes": 0, **options},
            )
        model = network()
        found = fit(model, recipe, made(), **options)
        assert_same_weights(model, expected)
        for name in ("loss", "val_loss"):
            assert found.history[name] == pytest.approx(in_order.history[name])


def test_standardized_images():
    images, labels = ARRAYS
    standardized = (images - images.mean()) / images.std()
    assert standardized.max() > 2
    history = whole_history(network(), (standardized, labels))
    assert np.all(np.isfinite(history["loss"]))
