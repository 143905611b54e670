"""The weights that come with the package: what they recognize, and what is kept."""

import dataclasses
import errno
import hashlib
import re
import shutil
import sys
import types
from pathlib import Path

import h5py
import keras
import numpy as np
import pytest

from keras_gdrn.data import SIZE_FACTORS, rescaled_arrays, stir_arrays
from keras_gdrn.layers import ScaleChannels
from keras_gdrn.models import (
    ARCHITECTURES,
    Card,
    Preprocess,
    _from_preset,
    architecture,
    count_parameters,
    from_preset,
    gauss_der_resnet,
    list_presets,
    only_layer,
    save_to_preset,
    with_input_shape,
    with_preprocess,
    with_sigma0,
)
from tests._cases import cases, slowly
from tests._pages import page

# Which images of its test set at three sizes, and of which side; the least accuracy.
SEEN = {
    "digits": ("digits", 40, 0.9),
    "mnist": ("digits", 56, 0.9),  # of another collection: not learned by heart
    "cifar10": ("cifar10", 64, 0.6),
}

of_files = pytest.mark.seen_on_tensorflow("files do not depend on it")


@pytest.fixture(scope="module")
def digits():
    return from_preset("digits")


# JAX compiles each scale channel for itself: there, those of twice the size.
@pytest.mark.parametrize("name", slowly(cases(list(SEEN), ["digits"]), ["cifar10"]))
@pytest.mark.usefixtures("step_by_step")
def test_images_are_recognized_at_three_sizes(name, request):
    """An untrained network recognizes a tenth, one trained at one scale a third."""
    dataset, side, least = SEEN[name]
    options = {"canvas": side, "limit": 16}
    if name == "cifar10":
        options["data_dir"] = request.getfixturevalue("cifar10_dir")
    model = from_preset(name, sigma0=cases(None, (2**0.5, 2.0)))
    model = with_input_shape(model, (side, side, model.input_shape[-1]))
    for factor in cases((0.5, 1.0, 2.0), (2.0,)):
        images, labels = rescaled_arrays(dataset, "test", factor, **options)
        found = model.predict(images, verbose=0).argmax(axis=-1)
        assert np.mean(found == labels) > least


@pytest.mark.slow
@pytest.mark.seen_on_tensorflow("the weights are one")
@pytest.mark.usefixtures("step_by_step")
def test_emoji_may_be_anywhere_and_of_any_size():
    model = from_preset("emoji")
    images, labels = stir_arrays("emoji", "test", (18, 64))
    images, labels = images[::2], labels[::2]
    assert np.mean(model.predict(images, verbose=0).argmax(-1) == labels) > 0.9
    smallest = with_sigma0(model, model.get_layer("scale_channels").sigma0[-1:])
    small = images[:18]  # which the coarsest channel alone does not see
    assert np.mean(smallest.predict(small, verbose=0).argmax(-1) == labels[:18]) < 0.5


WIDE = ARCHITECTURES["mnist"].widths  # the digits that come trained have them too


@of_files
@pytest.mark.parametrize("name", list_presets())
def test_card_and_page_tell_what_is_there(name):
    card, model = list_presets()[name], from_preset(name)
    content = (_from_preset.FOLDER / name / "model.weights.h5").read_bytes()
    assert len(content) < 2_000_000
    assert hashlib.sha256(content).hexdigest() == card.sha256
    assert all(getattr(card, field.name) for field in dataclasses.fields(Card))
    assert len(card.class_names) == model.output_shape[-1]
    assert model.get_layer("preprocess").class_names == card.class_names
    assert count_parameters(model) == card.parameters
    for shares, images in (
        (card.accuracy, card.test_images),
        (card.shift_accuracy, card.shift_images),
    ):
        numbers = " | ".join(f"{100 * share:.1f}" for share in shares.values())
        assert f"| `{name}` | {images} | {numbers} |" in page("docs/trained")
    if name in ARCHITECTURES:
        widths = {"widths": WIDE} if name == "digits" else {}
        built = architecture(name, **widths)
        size = model.get_layer("preprocess").object_size
        assert next(iter(card.accuracy)) == "0.5" and len(card.accuracy) == 9
        assert card.object_sizes == (size / 2, size * 2)
        scales = [m.get_layer("scale_channels").sigma0 for m in (model, built)]
        assert scales[0] == scales[1]
        shapes = ([(w.path, w.shape) for w in of.weights] for of in (model, built))
        assert next(shapes) == next(shapes)


@of_files
def test_other_images_and_scales_keep_the_weights(digits):
    changes = {"scale_pooling": "average", "scale_dropout": 0.5, "density": 0.9}
    changes |= {"spatial_selection": "max", "receptive_field": None}
    model = from_preset("digits", input_shape=(56, 48, 1), **changes)
    assert model.input_shape == (None, 56, 48, 1)
    channels = model.get_layer("scale_channels")
    assert (channels.density, channels.receptive_field) == (0.9, None)
    assert channels.sigma0 == digits.get_layer("scale_channels").sigma0
    assert channels.network.get_layer("spatial_selection").mode == "max"
    pooling = model.get_layer("scale_pooling")
    assert (pooling.mode, pooling.dropout) == ("average", 0.5)
    for mine, theirs in zip(model.get_weights(), digits.get_weights(), strict=True):
        np.testing.assert_array_equal(mine, theirs)
    images = np.zeros((1, 56, 48, 1), "uint8")
    assert np.isfinite(model(images)).all()
    one = np.array([1.0])
    single = from_preset("digits", sigma0=one).get_layer("scale_channels")
    assert (single.sigma0, single.density) == ((1.0,), 1.0)


def channel_of(model):
    return model.get_layer("scale_channels").network


POLICIES = ["mixed_bfloat16", keras.DTypePolicy("mixed_float16")]


@pytest.mark.parametrize("dtype", cases(POLICIES, POLICIES[:1]))
def test_in_another_precision_it_is_as_if_built_so(digits, dtype):
    scales = cases([1.0, 2.0], [1.0])
    model = from_preset("digits", dtype=dtype, sigma0=scales)
    keras.config.set_dtype_policy(dtype)
    built = architecture("digits", sigma0=scales, widths=WIDE)
    kept = channel_of(from_preset("digits")).get_layer("head").compute_dtype
    keras.config.set_dtype_policy("float32")
    assert kept == "float32"  # whatever the global policy
    channel_of(built).set_weights(channel_of(digits).get_weights())
    channels = [of.get_layer("scale_channels") for of in (model, built)]
    assert channels[0].dtype_policy.name == channels[1].dtype_policy.name
    x = np.random.default_rng(0).random((2, *digits.input_shape[1:]), "float32")
    scores = model(x)
    assert keras.backend.standardize_dtype(scores.dtype) == "float32"
    np.testing.assert_array_equal(*map(keras.ops.convert_to_numpy, (scores, built(x))))
    single = keras.ops.convert_to_numpy(from_preset("digits", sigma0=scales)(x))
    error = np.abs(keras.ops.convert_to_numpy(scores) - single).max()
    assert 0 < error < 0.2


@of_files
def test_an_unknown_precision_is_told():
    with pytest.raises(ValueError, match="Cannot convert 'bf16'"):
        from_preset("digits", dtype="bf16")


@of_files
def test_without_weights_it_is_the_same_network_untrained(digits):
    fresh = from_preset("digits", load_weights=False)
    assert fresh.get_config() == digits.get_config()
    untrained, trained = (channel_of(of).get_layer("head") for of in (fresh, digits))
    assert np.all(untrained.kernel != trained.kernel)


@of_files
@pytest.mark.parametrize(("classes", "names"), [(4, ()), (list("abcd"), (*"abcd",))])
def test_last_layer_begins_anew_for_other_classes(digits, classes, names):
    model = from_preset("digits", classes=classes)
    assert model.output_shape == (None, 4)
    assert model.get_layer("preprocess").class_names == names
    last, other = (channel_of(of).get_layer("block4").conv2 for of in (model, digits))
    np.testing.assert_array_equal(last.kernel, other.kernel)
    np.testing.assert_allclose(channel_of(model).get_layer("head").bias, 0.2)
    assert channel_of(digits).get_layer("head").filters == 10


@pytest.fixture
def small():
    known = Preprocess(["cat", "dog"], 8, "zero")
    model = gauss_der_resnet((8, 8, 3), 2, [4], 1.2, [1.0], order=1)
    return with_preprocess(model, known)


@of_files
def test_full_disk_leaves_the_network_that_was_there(small, tmp_path, monkeypatch):
    save_to_preset(small, tmp_path / "pets")
    before = {path: path.read_bytes() for path in (tmp_path / "pets").iterdir()}
    copied, copy = [], shutil.copy2

    def copy_one(source, target, **options):
        if copied:
            raise OSError(errno.ENOSPC, "No space left on device")
        copied.append(copy(source, target, **options))

    whole = shutil.copytree

    def limited(source, target, *_, **__):
        return whole(source, target, dirs_exist_ok=True, copy_function=copy_one)

    monkeypatch.setattr(shutil, "copytree", limited)
    other = gauss_der_resnet((8, 8, 3), 2, [6], 1.2, [1.0], order=1)
    with pytest.raises(OSError, match="No space left"):
        save_to_preset(other, tmp_path / "pets")
    assert copied
    after = {path: path.read_bytes() for path in (tmp_path / "pets").iterdir()}
    assert after == before


@of_files
@pytest.mark.parametrize("name", list_presets())
def test_an_older_keras_knows_all_options(name):
    """Keras 3.15 writes some that Keras 3.13 refuses."""
    folder = Path(_from_preset.__file__).parent / "trained" / name
    config = (folder / "config.json").read_text(encoding="utf-8")
    assert not re.search(r'"(renorm\w*|input_axes|output_axes)"', config)


@of_files
def test_selected_scale_grows_as_the_object():
    """In logarithms, the mean of the scale of the best class' largest score."""
    model = from_preset("digits")
    channels = only_layer(model, ScaleChannels)
    scales = keras.Model(model.input, channels.output)
    selected = []
    for factor in SIZE_FACTORS:
        images, labels = rescaled_arrays("digits", "test", factor, limit=60)
        of_class = scales.predict(images, verbose=0)[np.arange(60), :, labels]
        selected.append(np.log2(channels.sigma0)[of_class.argmax(axis=1)].mean())
    slope, _ = np.polyfit(np.log2(SIZE_FACTORS), selected, 1)
    assert abs(slope - 1) <= 0.05


def test_a_network_of_two_scale_channels_stays_one(small, tmp_path):
    network = small.get_layer("scale_channels").network
    image = keras.Input((8, 8, 3))
    near, far = (ScaleChannels(network, [scale])(image) for scale in (0.7, 1.4))
    model = with_preprocess(keras.Model(image, near + far), Preprocess())
    pool = keras.layers.GlobalAveragePooling1D()
    save_to_preset(keras.Model(model.input, pool(model.output)), tmp_path / "shared")
    loaded = from_preset(tmp_path / "shared")
    assert len(loaded.weights) == len(model.weights)
    x = np.random.default_rng(0).random((2, 8, 8, 3), "float32")
    expected = keras.ops.mean(model(x), axis=1)
    np.testing.assert_allclose(loaded(x), expected, rtol=1e-5)


def test_what_is_saved_is_found_again(small, tmp_path):
    card = Card("drawn", "cc0-1.0", "train.py", {"1": 0.75}, 4, limits="all else")
    save_to_preset(keras.models.clone_model(small), tmp_path / "pets")  # is replaced
    small.compile("adam", "mse")
    small.optimizer.build(small.trainable_variables)
    save_to_preset(small, tmp_path / "pets", card)
    save_to_preset(small, tmp_path / "bare")
    small.save(tmp_path / "pets.keras")
    x = np.random.default_rng(0).random((2, 8, 8, 3), "float32")
    for path in ("pets", "bare", "pets.keras"):
        loaded = from_preset(tmp_path / path)
        np.testing.assert_array_equal(loaded(x), small(x))
        known = loaded.get_layer("preprocess")
        found = known.class_names, known.object_size, known.extension
        assert found == (("cat", "dog"), 8, "zero")
    weights = tmp_path / "pets" / "model.weights.h5"
    with h5py.File(weights) as file:
        assert "optimizer" not in file
    weights.write_bytes(weights.read_bytes() + b"more")
    message = r"model\.weights\.h5 are damaged or do not match their card"
    with pytest.raises(ValueError, match=message):
        from_preset(weights.parent)
    text = (tmp_path / "pets" / "README.md").read_text(encoding="utf-8")
    for said in (
        *("license: cc0-1.0", "cat, dog", "`train.py`", "all else"),
        *("of 4 images | 75.0 |", 'from_preset("pets")'),
    ):
        assert said in text
    assert "accuracy" not in (tmp_path / "bare" / "README.md").read_text("utf-8")


@of_files
def test_hugging_face_both_ways(small, tmp_path, monkeypatch):
    hub = types.SimpleNamespace(  # as Keras and this package call it
        HfApi=lambda **_: hub,
        create_repo=lambda repo_id, **_: types.SimpleNamespace(repo_id=repo_id),
        upload_folder=lambda *, repo_id, folder_path, **_: shutil.copytree(
            folder_path, tmp_path / repo_id
        ),
        upload_file=lambda *, path_or_fileobj, path_in_repo, repo_id: shutil.copy(
            path_or_fileobj, tmp_path / repo_id / path_in_repo
        ),
        snapshot_download=lambda repo_id, **_: str(tmp_path / repo_id),
    )
    monkeypatch.setitem(sys.modules, "huggingface_hub", hub)
    monkeypatch.setattr("keras.src.saving.saving_lib.huggingface_hub", hub)
    save_to_preset(small, "hf://me/pets", Card(data="drawn"))
    x = np.random.default_rng(0).random((2, 8, 8, 3), "float32")
    np.testing.assert_array_equal(from_preset("hf://me/pets")(x), small(x))
    text = (tmp_path / "me/pets/README.md").read_text(encoding="utf-8")
    assert 'from_preset("hf://me/pets")' in text and "drawn" in text
