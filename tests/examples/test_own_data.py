"""own_data.py: from a folder of image files to a network, its test and its transfer."""

import argparse
import json
import os
import re
import runpy
import sys
from pathlib import Path

import keras
import numpy as np
import pytest
import tensorflow as tf
from PIL import Image

from keras_gdrn.training import lock_folder
from tests.examples._images import network, write_folder, write_image

PAGE = Path(__file__).resolve().parents[2] / "docs" / "own_data.md"
SMALL = ("--side", 12, "--widths", 4, 4, "--epochs", 1, "--factors", 0.5, 1)

pytestmark = [
    pytest.mark.filterwarnings("ignore:Even though the .*run_functions_eagerly"),
    pytest.mark.filterwarnings("ignore:The structure of `inputs` doesn't match"),
]


@pytest.fixture(autouse=True)
def eagerly(monkeypatch, tmp_path):
    """In a folder of its own, without tracing, which takes longer than these steps."""
    monkeypatch.chdir(tmp_path)
    tf.config.run_functions_eagerly(True)
    yield
    tf.config.run_functions_eagerly(False)


@pytest.fixture
def script(examples, monkeypatch):
    import own_data

    monkeypatch.setattr(own_data, "SIX_SCALES", (0.7, 1.4))
    monkeypatch.setattr(own_data.common, "VERBOSE", 0)
    return own_data


@pytest.fixture
def run(script, monkeypatch):
    def on(*arguments):
        monkeypatch.setattr(sys, "argv", ["own_data.py", *map(str, arguments)])
        script.main()

    return on


def test_from_a_folder_to_answers(run, tmp_path, monkeypatch, capsys):
    import predict

    write_folder(tmp_path / "photos")
    run("photos", *SMALL, "--out", "first")
    results = json.loads((tmp_path / "first/results.json").read_text(encoding="utf-8"))
    assert results["images"] == {"training": 16, "test": 4}
    assert results["classes"] == ["bright", "dark"]
    assert results["factors"] == [0.5, 1.0] and results["sigma0"] == [0.7, 1.4]
    for picture in ("scale_generalization.png", "scale_selection.png", "sizes.png"):
        assert (tmp_path / "first" / picture).stat().st_size > 1000
    model = keras.saving.load_model(tmp_path / "first/model.keras")
    assert model.input_shape == (None, 12, 12, 3)
    known = model.get_layer("preprocess")
    assert (known.class_names, known.object_size) == (("bright", "dark"), 12)

    image = next((tmp_path / "photos/dark").iterdir())
    monkeypatch.setattr(sys, "argv", ["predict.py", "first/model.keras", str(image)])
    predict.main()
    assert re.search(r": (dark|bright) \d+\.\d %, .*σ₀ = ", capsys.readouterr().out)

    run("photos", *SMALL, "--out", "second", "--start-from", "first/model.keras")
    with pytest.raises(SystemExit, match="start_from: None, now first"):
        run("photos", *SMALL, "--out", "first", "--start-from", "first/model.keras")
    write_image(tmp_path / "photos/dark/new.png", (12, 12), 10)
    with pytest.raises(SystemExit, match=r"images: 16 and 4 .*, now 17 and 4 held"):
        run("photos", *SMALL, "--out", "first")


def test_one_folder_is_of_one_process(run, tmp_path):
    write_folder(tmp_path / "photos")
    with lock_folder("mine"), pytest.raises(SystemExit, match="mine is in use by"):
        run("photos", *SMALL, "--out", "mine")
    assert not list((tmp_path / "mine").iterdir())


def test_each_image_is_read_once_with_its_label(script, tmp_path):
    train, test, classes = script.read_folder(write_folder(tmp_path / "p"), 16, 3, 0)
    for images in (train, test):
        bright = images.pixels.mean(axis=(1, 2, 3)) > 128
        np.testing.assert_array_equal(bright, images.labels == classes.index("bright"))
    assert len(train.labels) == 16 and train.pixels.shape[1:] == (16, 16, 3)
    once = {image.tobytes() for image in [*train.pixels, *test.pixels]}
    assert len(once) == 20


@pytest.mark.parametrize(("factor", "side"), [(0.5, 4), (1.0, 8), (1.3, 11), (2.0, 16)])
def test_size_factors(script, factor, side):
    pixels = np.zeros((3, 16, 16, 1), "uint8")
    pixels[:, 4:12, 4:12] = 255  # a square of half the image's side
    images = script.Images(pixels, np.arange(3, dtype="int32"))
    ((resized, labels),) = script.batches(images, factor, 3).as_numpy_iterator()
    assert resized.shape == (3, side, side, 1)
    assert 0 <= resized.min() < 0.01 and 0.85 < resized.max() <= 1
    assert resized[0, side // 2].mean() == pytest.approx(0.5, abs=0.05)
    assert list(labels) == [0, 1, 2]


def test_each_epoch_has_another_order_and_all_images(script):
    images = script.Images(np.zeros((9, 4, 4, 1), "uint8"), np.arange(9, dtype="int32"))
    orders = []
    for _ in range(2):
        data = script.batches(images, 1.0, 4, seed=5)
        for _ in range(2):
            epoch = [labels for _, labels in data.as_numpy_iterator()]
            orders.append(np.concatenate(epoch))
    assert all(sorted(order) == list(range(9)) for order in orders)
    np.testing.assert_array_equal(orders[0], orders[2])
    np.testing.assert_array_equal(orders[1], orders[3])
    assert list(orders[0]) != list(orders[1])


def test_hidden_files_and_folders_are_skipped(script, tmp_path):
    folder = write_folder(tmp_path / "photos", count=3)
    for hidden in (".thumbnails/bright/1.png", "dark/.cache/1.png", "dark/._1.png"):
        write_image(folder / hidden)
    write_image(folder / "dark" / "deeper" / "UPPER.PNG")
    train, test, classes = script.read_folder(folder, 8, 3, seed=0)
    assert classes == ["bright", "dark"]
    assert len(train.labels) + len(test.labels) == 7


def test_what_cannot_be_read_is_left_out_and_named(script, tmp_path, capsys):
    folder = write_folder(tmp_path / "photos", count=5)
    Image.new("1", (20000, 2)).save(folder / "dark" / "bomb.png")
    (folder / "dark" / "broken.jpg").write_bytes(b"no image")
    train, test, _ = script.read_folder(folder, 8, 3, seed=0)
    assert len(train.labels) == 8 and len(test.labels) == 2
    printed = capsys.readouterr().out.splitlines()
    assert [line.split(" cannot ")[0] for line in printed] == [
        f"left out: {folder}/dark/bomb.png",
        f"left out: {folder}/dark/broken.jpg",
    ]


def test_files_of_other_kinds_and_links_to_folders_are_told(script, tmp_path, capsys):
    folder = write_folder(tmp_path / "photos", count=4)
    for name in ("one.jpe", "two.JFIF"):
        write_image(folder / "dark" / name)
    (folder / "dark/link.png").symlink_to("1.png")
    (folder / "dark/empty").mkdir()
    for name in ("a.webp", "bright/b.tif", "bright/c.heic", "dark/none", ".hidden"):
        write_image(folder / name)
    write_image(folder / "beside.png")
    (folder / "self").symlink_to(folder)
    (folder / "dark/other.png").symlink_to(folder / "bright")
    train, test, classes = script.read_folder(folder, 8, 3, seed=0)
    assert classes == ["bright", "dark"]
    assert len(train.labels) + len(test.labels) == 11
    assert capsys.readouterr().out.splitlines() == [
        f"left out: 3 other files or links in {folder}: a.webp, beside.png, self",
        f"left out: 2 other files or links in {folder}/bright: b.tif, c.heic",
        f"left out: 2 other files or links in {folder}/dark: none, other.png",
    ]


def test_the_fingerprint_tells_images_and_what_is_held_out(script, tmp_path):
    folder = write_folder(tmp_path / "photos", count=5)

    def fingerprint(seed=0):
        train, test, _ = script.read_folder(folder, 8, 3, seed)
        return script.fingerprint(train, test)

    first = fingerprint()
    assert first.startswith("8 and 2 held out, ") and fingerprint() == first
    assert fingerprint(seed=1) != first
    write_image(folder / "dark" / "0.png", value=99)  # another image
    assert fingerprint() != first


def test_transfer_keeps_all_but_the_last_layer(script):
    before = network(zero_order=True, head_initializer="he_uniform")
    options = argparse.Namespace(side=24)
    model = script.network(options, before, ["a", "b", "c"], 3)
    assert (model.input_shape, model.output_shape) == ((None, 24, 24, 3), (None, 3))
    assert model.get_layer("preprocess").class_names == ("a", "b", "c")
    assert model.get_layer("scale_channels").sigma0 == (0.7, 1.4)
    channel, old = (m.get_layer("scale_channels").network for m in (model, before))
    for name in ("stem_conv", "stem_bn"):
        assert channel.get_layer(name) is old.get_layer(name)
    np.testing.assert_array_equal(channel.get_layer("head").bias, 1.0)


def no_folder(folder):
    return "none"


def one_class(folder):
    write_image(folder / "photos/cat/1.png")
    return "photos"


def no_images(folder):
    for name in ("cat", "dog"):
        (folder / "photos" / name).mkdir(parents=True)
    return "photos"


def a_class_without_images(folder):
    (write_folder(folder / "photos") / "cat").mkdir()
    return "photos"


def too_few_to_hold_out(folder):
    write_folder(folder / "photos", count=2)
    return "photos"


def not_in_utf8(folder):
    name = os.fsdecode(b"d\xff")
    write_folder(folder / "photos", count=5)
    write_image(folder / "photos" / name / "1.png")
    return "photos"


def ratio_beyond_the_images(folder):
    write_folder(folder / "photos")
    return "photos", "--ratio", 100


def not_from_a_network(folder):
    write_folder(folder / "photos")
    return "photos", "--start-from", "photos/dark/0.jpg"


REFUSED = {
    no_folder: "none",
    one_class: r"at least two classes. Received: \['cat'\]",
    no_images: r"none to train on for \['cat', 'dog'\]",
    a_class_without_images: r"none to train on for \['cat'\]",
    too_few_to_hold_out: r"photos must have at least 5 images .* Received: 4",
    not_in_utf8: "surrogates not allowed",
    ratio_beyond_the_images: "sigma=",
    not_from_a_network: "not supported: filepath=photos/dark/0.jpg",
}


@pytest.mark.parametrize("arguments", REFUSED)
def test_refused(run, arguments, tmp_path):
    given = arguments(tmp_path)
    given = (given,) if isinstance(given, str) else given
    with pytest.raises(SystemExit, match="error: .*" + REFUSED[arguments]):
        run(*given, *SMALL)
    assert not (tmp_path / "runs").exists()  # no folder was claimed


def test_gigantic_test_images_are_refused_before_training(run, tmp_path):
    write_folder(tmp_path / "photos")
    with pytest.raises(SystemExit, match="Received: 1000 times 12"):
        run("photos", *SMALL[:-3], "--factors", 1, 1000)
    assert not (tmp_path / "runs").exists()


NAMELESS = """
import keras
from keras_gdrn.layers import GaussDerConv, GaussDerResidualBlock, SpatialSelection
from keras_gdrn.layers import ScaleChannels, ScalePooling
from keras_gdrn.models import with_sigma0

x = image = keras.Input((48, 48, 3))
x = GaussDerConv(8, sigma=1.0, activation="relu")(x)
x = GaussDerResidualBlock(12, sigma=1.2)(x)
x = GaussDerConv(2, sigma=1.44, activation="relu", bias_initializer="ones")(x)
channel = keras.Model(image, SpatialSelection("center")(x))
image = keras.Input((48, 48, 3))
scores = ScaleChannels(channel, [0.5, 1.0])(image)
keras.Model(image, ScalePooling("max")(scores)).save("network.keras")
"""


@pytest.mark.parametrize("network", ["of the page", "in the README's style"])
def test_the_page_runs(tmp_path, network):
    """Its blocks, one after the other, in a folder with photos."""
    text = PAGE.read_text(encoding="utf-8")
    blocks = re.findall(r"```python\n(.*?)```", text, re.DOTALL)
    if network != "of the page":
        blocks[0] = NAMELESS
    (tmp_path / "page.py").write_text("".join(blocks), encoding="utf-8")
    write_folder(tmp_path / "photos", count=4)
    page = runpy.run_path(str(tmp_path / "page.py"))
    assert page["network"].output_shape == (None, 7)
    image = np.random.default_rng(0).random((1, 120, 160, 3)).astype("float32")
    assert page["backbone"](image).shape == (1, 4, 120, 160, 12)
