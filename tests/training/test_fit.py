"""Training by a recipe: that it learns, and that it goes on from anywhere."""

import dataclasses

import keras
import numpy as np
import pytest

from keras_gdrn.data import rescaled
from keras_gdrn.models import gauss_der_resnet
from keras_gdrn.training import Recipe, TimeLimit, fit
from tests.training._small import (
    ARRAYS,
    IMAGES,
    LABELS,
    RECIPE,
    StopAt,
    assert_same_weights,
    network,
)


def gauss_der_network(seed=0, **options) -> keras.Model:
    keras.utils.set_random_seed(seed)
    options = {"sigma0": (0.7, 1.0), "scale_dropout": 0.3, **options}
    return gauss_der_resnet((12, 12, 1), 10, (4,), 1.4, **options)


def digits(**options):
    options = {"canvas": 12, "limit": 44, "batch_size": 16, "shuffle": True, **options}
    return rescaled("digits", "train", **options)


class Items:
    """Images that are read by number, as PyTorch and grain have them."""

    def __len__(self):
        return 44

    def __getitem__(self, number):
        return ARRAYS[0][number], ARRAYS[1][number]


@pytest.mark.slow
@pytest.mark.parametrize(
    ("network", "data", "minutes", "interruptions"),
    [
        (network, lambda: ARRAYS, 0, [(0, 1), (1, 2), (1, 0), (2, 1)]),
        (network, digits, 10, [(0, 1), (2, 0)]),
        (network, Items, 0, [(1, 1)]),
        (gauss_der_network, digits, 0, [(1, 1)]),
    ],
    ids=["arrays", "dataset", "items", "gauss_der_resnet"],
)
def test_interrupted_runs_have_the_same_result(
    tmp_path, request, network, data, minutes, interruptions
):
    if minutes or data is Items:  # that graphs do so is seen above
        request.getfixturevalue("step_by_step")
    options = {"out": tmp_path, "checkpoint_minutes": minutes, "verbose": 0}
    whole = network()
    history = fit(whole, RECIPE, data(), verbose=0).history
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
        np.testing.assert_allclose(found.history["loss"], history["loss"], rtol=1e-6)
    with pytest.raises(AssertionError):
        assert_same_weights(network(), whole)


@pytest.mark.usefixtures("step_by_step")
def test_time_is_limited_and_the_same_call_goes_on(tmp_path):
    whole, data = network(), digits()  # which serve several calls
    fit(whole, RECIPE, data, verbose=0)
    for epochs in (1, 2, 3):
        model = network()
        found = fit(model, RECIPE, data, out=tmp_path, max_minutes=0, verbose=0)
        assert len(found.epoch) == epochs
    assert_same_weights(model, whole)
    limit = TimeLimit(minutes=0)
    for _ in range(2):  # there is time for an epoch of each
        found = fit(network(), RECIPE, ARRAYS, max_minutes=limit, verbose=0)
        assert len(found.epoch) == 1
    assert limit.longest >= found.history["seconds"][0]
    assert limit.is_reached(0)


def test_an_epoch_that_would_not_end_in_time_is_not_begun():
    """As the one before it took, whatever time is left for a shorter one."""
    asked, limit = [], TimeLimit()
    limit.is_reached = lambda seconds: asked.append(seconds) or True
    found = fit(network(), RECIPE, ARRAYS, max_minutes=limit, verbose=0)
    assert asked == found.history["seconds"]


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
def test_it_learns():
    model = gauss_der_network(sigma0=(1.0,), scale_dropout=0.0)
    history = fit(model, Recipe(12, 16), digits(limit=300), verbose=0).history
    assert history["loss"][-1] < 0.75 * history["loss"][0]
    assert history["accuracy"][-1] > 0.7


def test_mixed_precision_compilation_and_validation():
    keras.config.set_dtype_policy("mixed_bfloat16")
    model, tests = network(), digits(shuffle=False)
    options = {"validation_data": tests, "jit_compile": True, "verbose": 0}
    history = fit(model, Recipe(3, 22), ARRAYS, **options).history
    assert model.jit_compile
    assert model.layers[0].compute_dtype == "bfloat16"
    names = {"loss", "accuracy", "seconds", "val_loss", "val_accuracy"}
    assert history.keys() == names
    assert all(np.all(np.isfinite(of)) and len(of) == 3 for of in history.values())


BY_255 = r"divide .* by 255 \(`.* / 255`\). Received"


@pytest.mark.parametrize(
    ("data", "message"),
    [
        ([ARRAYS], "`data` must be arrays"),
        (list(ARRAYS), r"as a tuple.*use `model.fit`. Received: a list"),
        (IMAGES, r"`data` must be arrays.*use `model.fit`. Received: a ndarray"),
        ((IMAGES, LABELS[:-1]), "as many labels as images"),
        ((*ARRAYS, np.ones(3)), "as many weights as images"),
        ((*ARRAYS, np.arange(44) - 1.0), r"must be finite and >= 0. Received: \[-1"),
        ((*ARRAYS, np.full(44, np.nan)), r"must be finite.* \[nan"),
        ((IMAGES, LABELS.astype(str)), r"number their names.*return_inverse.*'\d'"),
        ((IMAGES, np.eye(7)[LABELS % 7]), r"one-hot \(N, 10\).*`model.fit`"),
        ((IMAGES, 2 * np.eye(10)[LABELS]), "must be shares that add up to 1"),
        ((IMAGES[..., 0], LABELS), r"of shapes \(N, H, W, C\).*\(44, 12, 12\)"),
        ((IMAGES, None), "`data` must be arrays"),
        ((IMAGES[:, :6], LABELS), r"data` .* \(12, 12, 1\).*\(6, 12, 1\)"),
        (digits(canvas=8), r"data` .* \(12, 12, 1\). Received: .*\(8, 8, 1\)"),
        (digits().map(lambda x, y: ({"image": x}, y)), "`data` must be .*'image'"),
        (digits().map(lambda x, y: (x, {"label": y})), "`data` must be arrays"),
        (digits().repeat(), "known, finite number of batches"),
        (((255 * IMAGES).astype("uint8"), LABELS), BY_255),
        ((16 * IMAGES.astype("float64"), LABELS), BY_255),  # as of scikit-learn
    ],
)
def test_unfit_data(data, message):
    with pytest.raises(ValueError, match=message):
        fit(network(), RECIPE, data)
    with pytest.raises(ValueError, match=message):
        fit(network(), RECIPE, ARRAYS, validation_data=data)


def without_scores() -> keras.Model:
    image = keras.Input((12, 12, 1))
    return keras.Model(image, keras.layers.ReLU()(image))


def with_two_inputs() -> keras.Model:
    images = [keras.Input((10,)), keras.Input((10,))]
    return keras.Model(images, keras.layers.Add()(images))


def with_layers(*layers: keras.layers.Layer) -> keras.Model:
    return keras.Sequential([*layers, keras.layers.Flatten(), keras.layers.Dense(1)])


class Subclassed(keras.Model):
    def call(self, images):
        return images[:, 0, :10, 0]


A_MODEL = r"`model` must be .*keras.Input\(.* to scores .*`model.fit`"


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"recipe": "cifar"}, r"one of \[.*'rescaled_cifar10',.*recipe='cifar'"),
        ({"recipe": 3}, r"must be a `Recipe` or one of \[.*recipe=3"),
        ({"seed": -1}, "`seed` must be an integer >= 0. Received: seed=-1"),
        ({"seed": 1.5}, "`seed` must be an integer >= 0. Received: seed=1.5"),
        ({"max_minutes": -1}, r"`max_minutes` must be .* max_minutes=-1"),
        ({"model": Subclassed()}, A_MODEL),
        ({"model": without_scores()}, A_MODEL),
        ({"model": with_two_inputs()}, A_MODEL),
        ({"model": with_layers()}, A_MODEL),
        ({"model": with_layers(keras.Input((12, 12, 1)))}, A_MODEL),  # of one class
    ],
)
def test_unfit_arguments(options, message):
    with pytest.raises(ValueError, match=message):
        fit(**{"model": network(), "recipe": RECIPE, "data": ARRAYS, **options})


def test_recipes_have_names(monkeypatch):
    class Fitted(Exception):
        pass

    def fitted(model, data, **options):
        raise Fitted(options["epochs"])

    monkeypatch.setattr(keras.Model, "fit", fitted)
    with pytest.raises(Fitted, match=r"^32$"):
        fit(network(), "rescaled_fashion_mnist", ARRAYS)


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


class Sequence(keras.utils.PyDataset):
    def __len__(self):
        return 3

    def __getitem__(self, number):
        return tuple(part[16 * number : 16 * number + 16] for part in ARRAYS)


class Loader:
    """An iterable with a length, such as PyTorch's `DataLoader`."""

    def __len__(self):
        return 3

    def __iter__(self):
        batches = Sequence()
        return (batches[number] for number in range(3))


def generated():
    """A `tf.data.Dataset` that tells no sizes, as generators and decoders make it."""
    import tensorflow as tf

    unknown = tf.TensorSpec((None, None, None, None)), tf.TensorSpec((None,), "int64")
    data = tf.data.Dataset.from_generator(Loader().__iter__, output_signature=unknown)
    return data.apply(tf.data.experimental.assert_cardinality(3))


@pytest.mark.slow
@pytest.mark.usefixtures("step_by_step")
def test_batches_that_are_made_elsewhere(tmp_path):
    """In their order, which is the same in each epoch here; augmented by the step."""
    expected, recipe = network(), dataclasses.replace(RECIPE, epochs=2)
    in_order = fit(expected, recipe, Loader(), validation_data=Loader(), verbose=0)
    for made in (Sequence, Loader, generated):
        options = {"validation_data": made(), "out": tmp_path / made.__name__}
        options |= {"checkpoint_minutes": 0, "verbose": 0}
        if made is Sequence:
            with pytest.raises(KeyboardInterrupt):
                fit(network(), recipe, made(), callbacks=StopAt(1, 1), **options)
        model = network()
        found = fit(model, recipe, made(), **options)
        assert_same_weights(model, expected)
        for name in ("loss", "val_loss"):
            assert found.history[name] == pytest.approx(in_order.history[name])


@pytest.mark.skipif(keras.backend.backend() != "jax", reason="only JAX has several")
def test_several_processes_are_refused(monkeypatch):
    import jax

    monkeypatch.setattr(jax, "process_count", lambda: 2)
    with pytest.raises(ValueError, match=r"Received: .* several JAX processes"):
        fit(network(), RECIPE, ARRAYS)
