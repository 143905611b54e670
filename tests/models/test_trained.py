"""The weights that come with the package: what they recognize, and what is refused."""

import dataclasses
import hashlib
import math
from pathlib import Path

import keras
import numpy as np
import pytest

from keras_gdrn.data import rescaled_arrays
from keras_gdrn.models import PRESETS, TRAINED, _trained, from_preset

each_weights = pytest.mark.parametrize("weights", TRAINED)


def recognized(model, factor, limit=96, canvas=40):  # three whole batches
    images, labels = rescaled_arrays(
        "digits", "test", factor, limit=limit, canvas=canvas
    )
    return np.mean(np.argmax(model.predict(images, verbose=0), axis=-1) == labels)


@pytest.fixture(scope="module")
def digits():
    return from_preset("digits", weights="digits")


@pytest.mark.parametrize("factor", [0.5, 1.0, 2.0])
def test_digits_are_recognized_at_three_sizes(digits, factor):
    """An untrained network recognizes a tenth, one trained at one scale a third."""
    assert recognized(digits, factor) > 0.9


@pytest.mark.seen_on_tensorflow("the weights are one")
def test_mnist_was_not_learned_by_heart():
    """Digits of another collection, at three sizes."""
    model = from_preset("mnist", weights="mnist", input_shape=(56, 56, 1))
    assert min(recognized(model, f, canvas=56) for f in (0.5, 1.0, 2.0)) > 0.9


@pytest.mark.seen_on_tensorflow("the weights are one")
def test_photographs_are_recognized_at_three_sizes(cifar10_dir):
    """Of the test set: an untrained network recognizes a tenth, as does one channel at
    half the size."""
    model = from_preset("cifar10", weights="cifar10", input_shape=(64, 64, 3))
    for factor in (0.5, 1.0, 2.0):
        images, labels = rescaled_arrays(
            "cifar10", "test", factor, limit=96, data_dir=cifar10_dir
        )
        scores = model.predict(images, verbose=0)
        assert np.mean(np.argmax(scores, axis=-1) == labels) > 0.6


@each_weights
def test_card_tells_what_is_there(weights):
    card = TRAINED[weights]
    settings = PRESETS[card.preset]
    assert len(card.class_names) == settings.classes
    assert next(iter(card.accuracy)) == "0.5" and len(card.accuracy) == 9
    assert all(0.1 < share <= 1 for share in card.accuracy.values())
    for name in ("images", "data", "command", "date", "environment", "limits"):
        assert getattr(card, name)


@each_weights
def test_weights_are_those_of_their_preset(weights):
    card = TRAINED[weights]
    trained = from_preset(card.preset, weights=weights)
    shapes = [weight.shape for weight in trained.trainable_weights]
    assert sum(map(math.prod, shapes)) == card.parameters
    untrained = from_preset(card.preset).trainable_weights
    for weight, other in zip(trained.trainable_weights, untrained, strict=True):
        assert np.any(keras.ops.convert_to_numpy(weight.value != other.value))


@each_weights
def test_the_page_has_the_numbers_of_the_card(weights):
    card, page = TRAINED[weights], Path(__file__).parents[2] / "docs" / "trained.md"
    accuracies = " | ".join(f"{100 * share:.1f}" for share in card.accuracy.values())
    row = f"| `{weights}` | {card.test_images} | {accuracies} |"
    assert row in page.read_text(encoding="utf-8")


@each_weights
def test_files_are_small_and_those_of_the_card(weights):
    content = (_trained.FOLDER / f"{weights}.weights.h5").read_bytes()
    assert len(content) < 2_000_000
    assert hashlib.sha256(content).hexdigest() == TRAINED[weights].sha256


def test_damaged_file_is_refused(tmp_path, monkeypatch):
    content = bytearray((_trained.FOLDER / "digits.weights.h5").read_bytes())
    content[-1] ^= 1
    (tmp_path / "digits.weights.h5").write_bytes(content)
    monkeypatch.setattr(_trained, "FOLDER", tmp_path)
    with pytest.raises(ValueError, match=r"'digits' is damaged: .*digits\.weights\.h5"):
        from_preset("digits", weights="digits")


def test_other_images_and_scales_keep_the_weights(digits):
    model = from_preset(
        "digits",
        weights="digits",
        input_shape=(56, 48, 1),
        sigma0=[1.0],
        scale_pooling="average",
    )
    assert model.input_shape == (None, 56, 48, 1)
    for mine, theirs in zip(model.get_weights(), digits.get_weights(), strict=True):
        np.testing.assert_array_equal(mine, theirs)


def test_last_layer_begins_anew_for_other_classes(digits):
    keras.utils.set_random_seed(0)
    model = from_preset("digits", weights="digits", classes=4)
    assert model.output_shape == (None, 4)
    own, other = (m.get_layer("scale_channels").network for m in (model, digits))
    np.testing.assert_array_equal(
        own.get_layer("block4").conv2.kernel, other.get_layer("block4").conv2.kernel
    )
    assert own.get_layer("head").kernel.shape[-1] == 4


def test_other_architectures_are_refused():
    message = "'digits' were trained with ratio=1.25. Received: ratio=1.3"
    with pytest.raises(ValueError, match=message):
        from_preset("digits", weights="digits", ratio=1.3)
    with pytest.raises(ValueError, match=r"trained with input_shape|widths="):
        from_preset("rescaled_cifar10", weights="digits")
    with pytest.raises(ValueError, match="another number of channels"):
        from_preset("digits", weights="digits", input_shape=(40, 40, 3))


def test_unknown_weights_are_refused():
    with pytest.raises(
        ValueError, match=r"no weights 'imagenet'\. There are \['cifar10"
    ):
        from_preset("digits", weights="imagenet")


def test_architecture_given_as_a_list_is_the_same():
    settings = dataclasses.asdict(PRESETS["digits"])
    given = {**settings, "widths": list(settings["widths"])}
    _trained.check_architecture("digits", given, settings)
