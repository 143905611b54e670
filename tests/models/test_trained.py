"""The weights that come with the package: what they recognize, and what is refused."""

import dataclasses
import hashlib
import math
import shutil
import sys
import types
from pathlib import Path

import keras
import numpy as np
import pytest

from keras_gdrn.data import rescaled_arrays, stir_arrays
from keras_gdrn.models import (
    Card,
    Preprocess,
    _from_preset,
    architecture,
    from_preset,
    gauss_der_resnet,
    list_presets,
    save_to_preset,
    with_preprocess,
    with_sigma0,
)
from tests._cases import cases

each = pytest.mark.parametrize("name", list_presets())


def recognized(model, factor, limit=32, canvas=40):  # a whole batch
    images, labels = rescaled_arrays(
        "digits", "test", factor, limit=limit, canvas=canvas
    )
    return np.mean(np.argmax(model.predict(images, verbose=0), axis=-1) == labels)


@pytest.fixture(scope="module")
def digits():
    # JAX compiles each scale channel for itself: there, those of twice the size.
    return from_preset("digits", sigma0=cases(None, (2**0.5, 2.0)))


@pytest.mark.parametrize("factor", cases([0.5, 1.0, 2.0], [2.0]))
def test_digits_are_recognized_at_three_sizes(digits, factor):
    """An untrained network recognizes a tenth, one trained at one scale a third."""
    assert recognized(digits, factor) > 0.9


@pytest.mark.seen_on_tensorflow("the weights are one")
@pytest.mark.usefixtures("step_by_step")
def test_mnist_was_not_learned_by_heart():
    """Digits of another collection, at three sizes."""
    model = from_preset("mnist", input_shape=(56, 56, 1))
    found = [recognized(model, f, canvas=56) for f in (0.5, 1.0, 2.0)]
    assert min(found) > 0.9


@pytest.mark.seen_on_tensorflow("the weights are one")
@pytest.mark.usefixtures("step_by_step")
def test_photographs_are_recognized_at_three_sizes(cifar10_dir):
    """Of the test set: an untrained network recognizes a tenth, as does one channel at
    half the size."""
    model = from_preset("cifar10", input_shape=(64, 64, 3))
    for factor in (0.5, 1.0, 2.0):
        images, labels = rescaled_arrays(
            "cifar10", "test", factor, limit=32, data_dir=cifar10_dir
        )
        scores = model.predict(images, verbose=0)
        assert np.mean(np.argmax(scores, axis=-1) == labels) > 0.6


@pytest.mark.seen_on_tensorflow("files do not depend on it")
@each
def test_card_and_page_tell_what_is_there(name):
    card, model = list_presets()[name], from_preset(name)
    assert len(card.class_names) == model.output_shape[-1]
    shares = [*card.accuracy.values(), *card.shift_accuracy.values()]
    assert len(shares) >= 12 and all(0 < share <= 1 for share in shares)
    for field in dataclasses.fields(Card):
        assert getattr(card, field.name), field.name
    shapes = [weight.shape for weight in model.trainable_weights]
    assert sum(map(math.prod, shapes)) == card.parameters
    known = model.get_layer("preprocess")
    assert known.class_names == card.class_names
    text = Path(__file__).parents[2].joinpath("docs/trained.md").read_text("utf-8")
    for shares, images in (
        (card.accuracy, card.test_images),
        (card.shift_accuracy, card.shift_images),
    ):
        numbers = " | ".join(f"{100 * share:.1f}" for share in shares.values())
        assert f"| `{name}` | {images} | {numbers} |" in text


@pytest.mark.parametrize("name", ["digits", "mnist", "cifar10"])
def test_networks_of_an_architecture_are_it(name):
    card, model, built = list_presets()[name], from_preset(name), architecture(name)
    assert next(iter(card.accuracy)) == "0.5" and len(card.accuracy) == 9
    size = model.get_layer("preprocess").object_size
    assert card.object_sizes == (size / 2, size * 2)
    of_channels = [m.get_layer("scale_channels").get_config() for m in (model, built)]
    assert of_channels[0]["sigma0"] == of_channels[1]["sigma0"]
    for mine, theirs in zip(model.weights, built.weights, strict=True):
        assert mine.shape == theirs.shape and mine.name == theirs.name
        same = np.array_equal(mine.numpy(), theirs.numpy())
        assert not (mine.trainable and same), mine.path


@pytest.mark.seen_on_tensorflow("the weights are one")
@pytest.mark.usefixtures("step_by_step")
def test_emoji_may_be_anywhere_and_of_any_size():
    model = from_preset("emoji")
    images, labels = stir_arrays("emoji", "test", (18, 64))
    assert np.mean(model.predict(images, verbose=0).argmax(-1) == labels) > 0.9
    smallest = with_sigma0(model, model.get_layer("scale_channels").sigma0[-1:])
    small = images[:36]  # which the coarsest channel alone does not see
    assert np.mean(smallest.predict(small, verbose=0).argmax(-1) == labels[:36]) < 0.5


@pytest.mark.seen_on_tensorflow("files do not depend on it")
@each
def test_files_are_small_and_those_of_the_card(name):
    content = (_from_preset.FOLDER / name / "model.weights.h5").read_bytes()
    assert len(content) < 2_000_000
    assert hashlib.sha256(content).hexdigest() == list_presets()[name].sha256


@pytest.mark.seen_on_tensorflow("files do not depend on it")
def test_damaged_file_is_refused(tmp_path):
    folder = Path(shutil.copytree(_from_preset.FOLDER / "digits", tmp_path / "digits"))
    content = bytearray((folder / "model.weights.h5").read_bytes())
    content[-1] ^= 1
    (folder / "model.weights.h5").write_bytes(content)
    with pytest.raises(ValueError, match=r"model\.weights\.h5 are damaged"):
        from_preset(folder)


@pytest.mark.seen_on_tensorflow("files do not depend on it")
def test_other_images_and_scales_keep_the_weights(digits):
    model = from_preset(
        "digits",
        input_shape=(56, 48, 1),
        sigma0=[1.0],
        scale_pooling="average",
        scale_dropout=0.5,
        spatial_selection="max",
        receptive_field=None,
    )
    assert model.input_shape == (None, 56, 48, 1)
    channels = model.get_layer("scale_channels")
    assert (channels.sigma0, channels.receptive_field) == ((1.0,), None)
    assert channels.subpixel is digits.get_layer("scale_channels").subpixel
    assert channels.network.get_layer("spatial_selection").mode == "max"
    pooling = model.get_layer("scale_pooling")
    assert (pooling.mode, pooling.dropout) == ("average", 0.5)
    for mine, theirs in zip(model.get_weights(), digits.get_weights(), strict=True):
        np.testing.assert_array_equal(mine, theirs)
    images = np.zeros((1, 56, 48, 1), "uint8")
    assert np.isfinite(model.predict(images, verbose=0)).all()


@pytest.mark.seen_on_tensorflow("files do not depend on it")
def test_without_weights_it_is_the_same_network_untrained(digits):
    fresh = from_preset("digits", load_weights=False)
    assert fresh.get_config() == digits.get_config()
    kernels = [
        m.get_layer("scale_channels").network.get_layer("head").kernel
        for m in (fresh, digits)
    ]
    assert np.any(keras.ops.convert_to_numpy(kernels[0].value != kernels[1].value))


@pytest.mark.seen_on_tensorflow("files do not depend on it")
@pytest.mark.parametrize("classes", [4, ("a", "b", "c", "d")])
def test_last_layer_begins_anew_for_other_classes(digits, classes):
    keras.utils.set_random_seed(0)
    model = from_preset("digits", classes=classes)
    assert model.output_shape == (None, 4)
    assert model.get_layer("preprocess").class_names == (
        () if classes == 4 else classes
    )
    own, other = (m.get_layer("scale_channels").network for m in (model, digits))
    np.testing.assert_array_equal(
        own.get_layer("block4").conv2.kernel, other.get_layer("block4").conv2.kernel
    )
    assert own.get_layer("head").kernel.shape[-1] == 4
    np.testing.assert_allclose(own.get_layer("head").bias, 0.2)
    assert other.get_layer("head").filters == 10


@pytest.mark.seen_on_tensorflow("files do not depend on it")
@pytest.mark.parametrize(
    ("preset", "options", "message"),
    [
        ("digits", {"ratio": 1.3}, "`from_preset` has no argument `ratio`"),
        ("digits", {"num_classes": 3}, "Did you mean `classes`"),
        ("digits", {"input_shape": (40, 40, 3)}, "1 channels, the last of them"),
        ("digits", {"classes": 0}, "`classes` must be an integer >= 1"),
        (
            "imagenet",
            {},
            r"no trained network 'imagenet'\. Trained .* \['cifar10",
        ),
        ("stl10", {}, r"no trained network 'stl10'; `architecture\('stl10'\)` builds"),
    ],
)
def test_refused(preset, options, message):
    with pytest.raises(ValueError, match=message):
        from_preset(preset, **options)


@pytest.fixture
def small():
    known = Preprocess(["cat", "dog"], 8)
    model = gauss_der_resnet((8, 8, 3), 2, [4], 1.2, [1.0], order=1)
    return with_preprocess(model, known)


def test_what_is_saved_is_found_again(small, tmp_path):
    card = Card("drawn", "cc0-1.0", "train.py", {"1": 0.75}, 4, limits="all else")
    save_to_preset(keras.models.clone_model(small), tmp_path / "pets")  # is replaced
    save_to_preset(small, tmp_path / "pets", card)
    save_to_preset(small, tmp_path / "bare")
    small.save(tmp_path / "pets.keras")
    x = np.random.default_rng(0).random((2, 8, 8, 3), "float32")
    for path in ("pets", "bare", "pets.keras"):
        loaded = from_preset(tmp_path / path)
        np.testing.assert_array_equal(loaded(x), small(x))
        assert loaded.get_layer("preprocess").class_names == ("cat", "dog")
    text = (tmp_path / "pets" / "README.md").read_text(encoding="utf-8")
    for said in ("license: cc0-1.0", "cat, dog", "`train.py`", "| 75.0 |", "all else"):
        assert said in text
    assert "of 4 images" in text and 'from_preset("pets")' in text
    assert "accuracy" not in (tmp_path / "bare" / "README.md").read_text("utf-8")


class Hub:
    """Stands for huggingface_hub, as Keras and this package call it."""

    def __init__(self, folder):
        self.folder = folder

    def __call__(self, **_):
        return self

    HfApi = property(lambda self: self)

    def create_repo(self, repo_id, exist_ok):
        return types.SimpleNamespace(repo_id=repo_id)

    def upload_folder(self, *, repo_id, folder_path, **_):
        shutil.copytree(folder_path, self.folder / repo_id)

    def upload_file(self, *, path_or_fileobj, path_in_repo, repo_id):
        shutil.copy(path_or_fileobj, self.folder / repo_id / path_in_repo)

    def snapshot_download(self, *, repo_id, **_):
        return str(self.folder / repo_id)


@pytest.mark.seen_on_tensorflow("files do not depend on it")
def test_hugging_face_both_ways(small, tmp_path, monkeypatch):
    hub = Hub(tmp_path)
    monkeypatch.setitem(sys.modules, "huggingface_hub", hub)
    monkeypatch.setattr("keras.src.saving.saving_lib.huggingface_hub", hub)
    save_to_preset(small, "hf://me/pets", Card(data="drawn"))
    x = np.random.default_rng(0).random((2, 8, 8, 3), "float32")
    np.testing.assert_array_equal(from_preset("hf://me/pets")(x), small(x))
    text = (tmp_path / "me/pets/README.md").read_text(encoding="utf-8")
    assert 'from_preset("hf://me/pets")' in text and "drawn" in text


@pytest.mark.seen_on_tensorflow("files do not depend on it")
def test_hugging_face_without_its_package(small):
    with pytest.raises(ImportError, match="huggingface_hub"):
        from_preset("hf://me/pets")
