"""What all pipelines have in common: elements, batches, orders, refused arguments."""

from functools import partial

import numpy as np
import pytest

from keras_gdrn.data import (
    DATASETS,
    _source,
    imresize,
    original_arrays,
    rescale,
    rescaled,
    rescaled_arrays,
    stir,
    stir_arrays,
    stir_published,
)
from keras_gdrn.training._sources import as_source

SOURCES = ("rescaled", "stir")


@pytest.fixture
def source(request):
    """A pipeline of 300 images, more than a chunk, and the same images as arrays."""
    digits, symbols = ("digits", "test", 2**0.25), ("emoji", "validation", [20, 40, 64])
    arrays = rescaled_arrays(*digits, limit=300)
    return {
        "rescaled": (partial(rescaled, *digits, limit=300), arrays),
        "stir": (partial(stir, *symbols), stir_arrays(*symbols)),
    }[request.param]


def collected(data) -> tuple[np.ndarray, np.ndarray]:
    """All images and labels, of batches or of single elements."""
    images, labels = zip(*data.as_numpy_iterator(), strict=True)
    join = np.stack if np.ndim(labels[0]) == 0 else np.concatenate
    return join(images), join(labels)


def assert_same(found, expected, tolerance=1e-6):
    np.testing.assert_allclose(found[0], expected[0], rtol=0, atol=tolerance)
    np.testing.assert_array_equal(found[1], expected[1])
    assert [part.dtype for part in found] == ["float32", "int32"]


@pytest.mark.parametrize("source", SOURCES, indirect=True)
@pytest.mark.parametrize("batch_size", [None, 100])
def test_elements_are_those_of_the_arrays_always_in_the_same_order(source, batch_size):
    pipeline, expected = source
    data, count = pipeline(batch_size=batch_size), len(expected[1])
    sizes = [np.size(labels) for _, labels in data.as_numpy_iterator()]
    full, rest = divmod(count, batch_size or 1)
    assert sizes == [batch_size or 1] * full + [rest] * (rest > 0)
    assert int(data.cardinality()) == len(sizes)
    batch = () if batch_size is None else (None,)
    spec = [tuple(part.shape) for part in data.element_spec]
    assert spec == [(*batch, *expected[0].shape[1:]), batch]
    for _ in range(2):
        assert_same(collected(data), expected)


@pytest.mark.parametrize("source", SOURCES, indirect=True)
def test_shuffling_follows_the_seed_and_differs_between_epochs(source):
    pipeline, arrays = source

    def pairs(images, labels):
        return [(i.tobytes(), label) for i, label in zip(images, labels, strict=True)]

    def epochs(seed):
        data = pipeline(shuffle=True, seed=seed, batch_size=45)
        return [pairs(*collected(data)) for _ in range(2)]

    first, second = epochs(seed=1)
    assert sorted(first) == sorted(second) == sorted(pairs(*arrays))
    assert pairs(*arrays) != first != second
    assert epochs(seed=1) == [first, second]
    assert epochs(seed=2)[0] != first


@pytest.mark.parametrize("source", SOURCES, indirect=True)
@pytest.mark.parametrize("shuffle", [False, True])
def test_without_tensorflow_the_batches_are_the_same(source, shuffle, monkeypatch):
    """In each epoch: a run of `fit` may begin with some and end with the others."""
    options = {"shuffle": shuffle, "seed": 1, "batch_size": 100}
    of_tensorflow = source[0](**options)
    monkeypatch.setattr(_source, "has_tensorflow", lambda: False)
    data = source[0](**options)
    for _ in range(2):
        pairs = zip(data, of_tensorflow.as_numpy_iterator(), strict=True)
        for batch, expected in pairs:
            assert_same(batch, expected)
        data.on_epoch_end()
    assert as_source(data).fingerprint() == as_source(of_tensorflow).fingerprint()
    with pytest.raises(IndexError, match=r"batch 3 of [23]"):
        data[3]
    assert len(source[0]()[0][1]) == 1


FUNCTIONS = {
    original_arrays: {"name": "digits", "split": "test"},
    rescaled: {"name": "digits", "split": "test"},
    rescaled_arrays: {"name": "digits", "split": "test"},
    stir: {"name": "emoji", "split": "train"},
    stir_arrays: {"name": "emoji", "split": "train"},
    stir_published: {"name": "emoji", "scenario": 1},
    DATASETS["cifar10"].slices: {"split": "test"},
    imresize: {"images": np.zeros((4, 4))},
    rescale: {"images": np.ones((4, 4)), "factor": 1, "canvas": 8, "extension": "zero"},
}
WITH_SPLIT = [f for f, options in FUNCTIONS.items() if "split" in options]
RESCALED, WITH_BATCHES = [rescaled, rescaled_arrays], [rescaled, stir]


@pytest.mark.parametrize(
    ("name", "values", "functions"),
    [
        ("name", ("imagenet", "cifar"), [original_arrays, *RESCALED, stir]),
        ("name", ("aerial",), [stir_published]),
        ("split", ("valid",), WITH_SPLIT),
        ("split", ("validation",), [original_arrays, *RESCALED]),  # of the digits
        ("limit", (0, 2.5), [original_arrays, *RESCALED]),
        ("factor", (0.0, float("nan")), [*RESCALED, rescale]),
        ("factor", (0, -0.5, float("inf"), "2", True), [imresize]),
        ("canvas", (0,), RESCALED),
        ("canvas", (0, 8.0, (8, 8, 1), (8, -1), True), [rescale]),
        ("extension", ("reflect",), [rescale]),
        ("batch_size", (0, True), WITH_BATCHES),
        ("sizes", (16, [17, 65], [], [20.0]), [stir, stir_arrays]),
        ("side", (65, 40), [stir, stir_arrays]),  # for sizes up to 64
        ("scenario", (5,), [stir_published]),
    ],
)
def test_errors_name_the_argument_and_the_value(name, values, functions):
    for function in functions:
        for value in values:
            with pytest.raises(ValueError) as error:
                function(**{**FUNCTIONS[function], name: value})
            assert f"`{name}`" in str(error.value)
            assert f"Received: {name}={value!r}" in str(error.value)
