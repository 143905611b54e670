"""Training by a recipe: that it learns, and that it goes on from anywhere."""

import time

import keras
import numpy as np
import pytest

from keras_gdrn.data import rescaled
from keras_gdrn.training import Recipe, fit
from tests._cases import cases
from tests.training._small import (
    ARRAYS,
    IMAGES,
    LABELS,
    RECIPE,
    Loader,
    StopAt,
    assert_same_weights,
    gauss_der_network,
    network,
)


def digits(**options):
    options = {"canvas": 12, "limit": 44, "batch_size": 16, "shuffle": True, **options}
    return rescaled("digits", "train", **options)


def generated():
    """A `tf.data.Dataset` that tells no sizes, as generators and decoders make it."""
    import tensorflow as tf

    unknown = tf.TensorSpec((None, None, None, None)), tf.TensorSpec((None,), "int64")
    data = tf.data.Dataset.from_generator(Loader().__iter__, output_signature=unknown)
    return data.apply(tf.data.experimental.assert_cardinality(3))


INTERRUPTED = {
    "arrays": (network, lambda: ARRAYS, 0, [(0, 1), (0, 1), (1, 2), (1, 0), (2, 1)]),
    "dataset": (network, digits, 10, [(0, 1), (2, 0)]),
    "generator": (network, generated, 0, [(1, 1)]),
    "gauss_der_resnet": (gauss_der_network, digits, 0, [(1, 1)]),
}


@pytest.mark.slow
@pytest.mark.parametrize("name", cases(INTERRUPTED, ["arrays", "gauss_der_resnet"]))
def test_interrupted_runs_have_the_same_result(tmp_path, request, name):
    """In graphs: for a generator's unknown sizes, and for the package's own network."""
    network, data, minutes, interruptions = INTERRUPTED[name]
    if name in ("arrays", "dataset"):
        request.getfixturevalue("step_by_step")
    options = {"validation_data": data(), "verbose": 0}
    whole = network()
    history = fit(whole, RECIPE, data(), **options).history
    options |= {"out": tmp_path, "checkpoint_minutes": minutes}
    for epoch, batch in interruptions:
        stop = StopAt(epoch, batch)
        with pytest.raises(KeyboardInterrupt):
            fit(network(), RECIPE, data(), callbacks=stop, **options)
    resumed, again = network(seed=1), network(seed=2)
    for model in (resumed, again):  # the second one is not trained
        stop = StopAt(*interruptions[-1]) if model is again else ()
        found = fit(model, RECIPE, data(), callbacks=stop, **options)
        assert_same_weights(model, whole)
        assert found.epoch == [0, 1, 2]
        for name in ("loss", "accuracy", "val_loss"):
            assert found.history[name] == pytest.approx(history[name])
    with pytest.raises(AssertionError):
        assert_same_weights(network(), whole)


@pytest.mark.usefixtures("step_by_step")
def test_a_run_that_a_callback_has_stopped_is_finished(tmp_path):
    """With the weights that the callback has left; a new run is not stopped."""
    model, data = network(), digits()  # data serve several calls
    best = []

    class BestIsFirst(keras.callbacks.EarlyStopping):
        def on_epoch_end(self, epoch, logs=None):
            super().on_epoch_end(epoch, logs | {"loss": float(epoch)})
            best[:] = best or [self.model.get_weights()]

    stop = BestIsFirst("loss", restore_best_weights=True, patience=1)
    begin = time.perf_counter()
    found = fit(model, RECIPE, data, out=tmp_path, callbacks=stop, verbose=0)
    assert 0 < sum(found.history["seconds"]) < time.perf_counter() - begin
    for callbacks in (stop, None):
        again = network()
        same = fit(again, RECIPE, data, out=tmp_path, callbacks=callbacks, verbose=0)
        assert len(same.epoch) == len(found.epoch) == 2
        for actual, expected in zip(again.get_weights(), best[0], strict=True):
            np.testing.assert_array_equal(actual, expected)
    assert len(fit(model, RECIPE, data, verbose=0).epoch) == 3


@pytest.mark.parametrize(
    "callback",
    [
        keras.callbacks.ReduceLROnPlateau(),
        keras.callbacks.LearningRateScheduler(lambda epoch: 0.1),
        "early",
    ],
)
def test_callbacks_that_cannot_work_are_refused_at_once(callback):
    with pytest.raises(ValueError, match=r"`callbacks` must (not set|be Keras callb)"):
        fit(network(), RECIPE, ARRAYS, callbacks=[callback])


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
    fit(network(), RECIPE, ARRAYS, validation_data=ARRAYS, verbose=0)
    assert len(traced) == 1


@pytest.mark.slow
def test_it_learns_in_mixed_precision_compiled_and_validated():
    keras.config.set_dtype_policy("mixed_bfloat16")
    model, data = network(), digits(limit=300)
    options = {"validation_data": data, "jit_compile": True, "verbose": 0}
    history = fit(model, Recipe(8, 16), data, **options).history
    assert model.jit_compile
    assert model.layers[0].compute_dtype == "bfloat16"
    assert {*history} == {"loss", "accuracy", "seconds", "val_loss", "val_accuracy"}
    assert all(np.all(np.isfinite(of)) and len(of) == 8 for of in history.values())
    assert history["loss"][-1] < 0.75 * history["loss"][0]
    assert history["val_accuracy"][-1] > 0.7


@pytest.mark.parametrize(
    ("data", "message"),
    [
        (list(ARRAYS), r"a tuple of arrays.*use `model.fit`. Received: a list"),
        (IMAGES, r"`data` must be a tuple .*use `model.fit`. Received: a ndarray"),
        (digits().map(lambda x, y: (x,)), "`data` must be a tuple of arrays"),
        ((IMAGES, LABELS[:-1]), r"equally many.*\[44, 43\]"),
        ((*ARRAYS, np.ones(3)), r"equally many.*\[44, 44, 3\]"),
        ((*ARRAYS, np.arange(44) - 1.0), r"must be finite and >= 0. Received: \[-1"),
        ((*ARRAYS, np.full(44, np.nan)), r"must be finite.* \[nan"),
        ((IMAGES, LABELS.astype(str)), r"number their names.*return_inverse.*'\d'"),
        ((IMAGES, np.eye(7)[LABELS % 7]), r"one-hot \(N, 10\).*`model.fit`"),
        ((IMAGES, 2 * np.eye(10)[LABELS]), "must be >= 0 and add up to 1"),
        ((IMAGES[..., 0], LABELS), r"of shapes \(N, H, W, C\).*\(44, 12, 12\)"),
        ((IMAGES[:, :6], LABELS), r"data` .* \(12, 12, 1\).*\(6, 12, 1\)"),
        (digits().map(lambda x, y: ({"image": x}, y)), "`data` must be .*'image'"),
        (digits().repeat(), "known, finite number of batches"),
        (Loader(length=0), "known, finite number of batches"),
        (((255 * IMAGES).astype("uint8"), LABELS), r"divide .* by 255 .*type uint8"),
        ((16 * IMAGES, LABELS), r"divide .* by 255 .*up to 16"),  # as of scikit-learn
    ],
)
def test_unfit_data(data, message):
    with pytest.raises(ValueError, match=message):
        fit(network(), RECIPE, data)
    with pytest.raises(ValueError, match=message):
        fit(network(), RECIPE, ARRAYS, validation_data=data)


def with_layers(*layers: keras.layers.Layer, classes: int = 1) -> keras.Model:
    last = [keras.layers.Flatten(), keras.layers.Dense(classes)]
    return keras.Sequential([*layers, *last])


IMAGE, TABLES = keras.Input((12, 12, 1)), [keras.Input((10,)), keras.Input((10,))]
NO_CLASSIFIERS = [
    keras.Model(),
    with_layers(classes=10),  # of any input
    with_layers(IMAGE),  # of one class
    keras.Model(IMAGE, keras.layers.ReLU()(IMAGE)),
    keras.Model(TABLES, keras.layers.Add()(TABLES)),
]
A_MODEL = r"`model` must be .*keras.Input\(.* to scores .*`model.fit`"


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"recipe": "cifar"}, r"one of \[.*'rescaled_cifar10',.*recipe='cifar'"),
        ({"recipe": 3}, r"must be a `Recipe` or one of \[.*recipe=3"),
        ({"recipe": "cifar10"}, r"Did you mean `rescaled_cifar10`\? .*='cifar10'"),
        ({"recipe": np.ones((40, 40, 40))}, r"\]\. Received: recipe=.{1,99}$"),
        ({"seed": 1.5}, "`seed` must be an integer >= 0. Received: seed=1.5"),
        ({"checkpoint_minutes": -1}, r"`checkpoint_minutes` must be .*minutes=-1"),
        *(({"model": model}, A_MODEL) for model in NO_CLASSIFIERS),
    ],
)
def test_unfit_arguments(options, message):
    with pytest.raises(ValueError, match=message):
        fit(**{"model": network(), "recipe": RECIPE, "data": ARRAYS, **options})


@pytest.mark.usefixtures("step_by_step")
def test_weights_of_images_and_of_classes():
    """Of weight zero, a label has no effect; those of classes are of their images."""

    def trained(labels, *weights, **options):
        model, data = network(), (IMAGES, labels, *weights)
        history = fit(model, Recipe(2, 44), data, verbose=0, **options).history
        return np.append(model.layers[-1].get_weights()[0], history["accuracy"])

    weights = np.repeat([1.0, 0.0], 22)
    wrong = np.where(weights > 0, LABELS, (LABELS + 1) % 10)
    expected = trained(LABELS, weights)
    np.testing.assert_array_equal(trained(wrong, weights), expected)
    assert np.any(trained(wrong) != expected)
    of_class = trained(LABELS, class_weight={n: 1.0 + n for n in range(10)})
    np.testing.assert_allclose(trained(LABELS, 1.0 + LABELS), of_class, atol=1e-5)


@pytest.mark.seen_on_tensorflow("Python completes them")
@pytest.mark.usefixtures("step_by_step")
def test_classes_without_a_weight_weigh_one():
    def trained(weights):
        model = network()
        fit(model, Recipe(1, 44), ARRAYS, verbose=0, class_weight=weights)
        return model.layers[-1].get_weights()[0]

    some = trained({0: 3.0, np.int64(1): np.float32(0.5)})
    every = trained({0: 3.0, 1: 0.5} | dict.fromkeys(range(2, 10), 1.0))
    np.testing.assert_array_equal(some, every)
    np.testing.assert_array_equal(trained({}), trained(None))


@pytest.mark.parametrize(
    "weights", ({10: 1.0}, {-1: 1.0}, {0: -1.0}, {0: np.inf}, {"cat": 1.0}, np.ones(10))
)
def test_wrong_class_weights(weights):
    with pytest.raises(ValueError, match=r"`class_weight`.* 0 to 9.*Received: class_w"):
        fit(network(), RECIPE, ARRAYS, class_weight=weights)


@pytest.mark.usefixtures("step_by_step")
def test_numbers_may_be_numpys(tmp_path):
    recipe = Recipe(np.int64(1), np.int32(44), learning_rate=np.float32(0.01))
    for _ in range(2):  # and the run is found again
        history = fit(
            network(), recipe, ARRAYS, out=tmp_path / "run", verbose=0, callbacks=None
        )
        assert len(history.history["loss"]) == 1


@pytest.mark.skipif(keras.backend.backend() != "jax", reason="only JAX has several")
def test_several_processes_are_refused(monkeypatch):
    import jax

    monkeypatch.setattr(jax, "process_count", lambda: 2)
    with pytest.raises(ValueError, match=r"Received: .* several JAX processes"):
        fit(network(), RECIPE, ARRAYS)
