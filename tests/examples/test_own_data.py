"""own_data.py: from a folder of images to a network; predict.py: what it answers."""

import hashlib
import os
import re
import runpy
from pathlib import Path

import keras
import numpy as np
import pytest
from PIL import Image

from keras_gdrn.data import SIZE_FACTORS, read_image
from keras_gdrn.models import Preprocess, classify, gauss_der_resnet, with_preprocess
from tests._pages import code

SMALL = ("photos", "--side", 12, "--widths", 4, 4, "--epochs", 1)

pytestmark = pytest.mark.filterwarnings("ignore:The structure of `inputs` doesn't")


def write_image(path: Path, shape=(20, 14, 3), value=0) -> Path:
    """A JPEG file, if it is called so, or a PNG file: noise around a gray value."""
    noise = np.random.default_rng(value).integers(0, 60, shape) + value
    path.parent.mkdir(parents=True, exist_ok=True)
    kind = "jpeg" if path.suffix == ".jpg" else "png"
    Image.fromarray(noise.astype("uint8")).save(path, kind)
    return path


def write_folder(folder: Path, count: int = 10) -> Path:
    """`count` dark and `count` bright images, each of another size."""
    for n in range(count):
        name, shape = f"{n}.{'png' if n % 2 else 'jpg'}", (12 + n, 30 - 2 * n, 3)
        write_image(folder / "dark" / name, shape, 10 + n)
        write_image(folder / "bright" / name, shape, 180 + n)
    return folder


@pytest.fixture
def own_data(script, monkeypatch):
    module = script("own_data")
    monkeypatch.setattr(module.models, "SIX_SCALES", (0.7, 1.4))
    monkeypatch.setattr(module, "SIZE_FACTORS", SIZE_FACTORS[::8])
    return module


@pytest.fixture
def photos(tmp_path):
    return write_folder(tmp_path / "photos")


@pytest.mark.slow
def test_from_a_folder_to_answers(own_data, script, main, photos, tmp_path):
    printed = main(own_data, *SMALL, "--out", "first")
    assert re.search(r"Test on the \d held-out images.*\| accuracy \|", printed, re.S)
    for picture in ("scale_generalization.png", "scale_selection.png"):
        assert (tmp_path / "first" / picture).stat().st_size > 1000
    model = keras.saving.load_model(tmp_path / "first/model.keras")
    assert model.input_shape == (None, 12, 12, 3)
    known = model.get_layer("preprocess")
    assert (known.class_names, known.object_size) == (("bright", "dark"), 12)
    printed = main(script("predict"), "first/model.keras", photos / "dark/0.jpg")
    assert re.search(r": (dark|bright) \d+\.\d %, .*σ₀ = ", printed)

    for n in range(9):  # a third class
        write_image(photos / f"gray/{n}.png", value=90 + n)
    main(own_data, *SMALL, "--out", "second", "--start-from", "first/model.keras")
    second = keras.saving.load_model(tmp_path / "second/model.keras")
    assert second.output_shape == (None, 3)
    with pytest.raises(SystemExit, match="other settings"):
        main(own_data, *SMALL, "--out", "first")


def test_each_image_is_read_once_and_its_copies_are_on_one_side(own_data, photos):
    """Whatever they are called, whatever their side, and whatever is added."""
    _, images, labels, held_out = own_data.read(photos, 8, 3)
    assert images.shape == (20, 8, 8, 3) and images.dtype == np.uint8
    np.testing.assert_array_equal(images.mean(axis=(1, 2, 3)) < 128, labels == 1)
    sides = {i.tobytes(): out for i, out in zip(images, held_out, strict=True)}
    assert len(sides) == 20 and 0 < held_out.sum() < 10
    for n, file in enumerate(list(photos.rglob("*.*"))):
        (photos / "bright" / f"copy {n}.png").write_bytes(file.read_bytes())
    _, images, _, held_out = own_data.read(photos, 8, 3)
    assert len(images) == 40
    assert held_out.tolist() == [sides[image.tobytes()] for image in images]
    *_, larger = own_data.read(photos, 24, 3)
    np.testing.assert_array_equal(larger, held_out)


@pytest.mark.parametrize(("factor", "side"), [(0.5, 4), (1.0, 8), (1.3, 11), (2.0, 16)])
def test_size_factors(own_data, factor, side):
    pixels = np.zeros((3, 16, 16, 1), "uint8")
    pixels[:, 4:12, 4:12] = 255  # a square of half the image's side
    resized = own_data.resized(pixels, factor)
    assert resized.shape == (3, side, side, 1)
    assert 0 <= resized.min() < 0.01 and 0.85 < resized.max() <= 1
    assert resized[0, side // 2].mean() == pytest.approx(0.5, abs=0.05)


def test_what_is_no_image_is_left_out(own_data, photos, capsys):
    Image.new("1", (20000, 2)).save(photos / "dark" / "bomb.png")
    (photos / "dark" / "broken.jpg").write_bytes(b"no image")
    left_out = (".thumbnails/bright/1.png", "dark/.cache/1.png", "dark/._1.png")
    left_out += ("bright/b.tif", "dark/none", "in_no_class.png")
    for name in (*left_out, "dark/deeper/UPPER.PNG"):
        write_image(photos / name)
    (photos / "dark/empty").mkdir()
    (photos / "dark/round").symlink_to(photos)
    _, images, *_ = own_data.read(photos, 8, 3)
    assert len(images) == 21
    lines = capsys.readouterr().out.splitlines()
    files = [f"left out: {photos}/dark/{name}" for name in ("bomb.png", "broken.jpg")]
    assert [line.split(" cannot ")[0] for line in lines] == files


def leave(photos, classes, held_out):
    """Of some classes only images that are held out, or only others, by the pixels."""
    for file in photos.glob(f"{classes}/*"):
        is_so = hashlib.sha256(read_image(file, 3).tobytes()).digest()[0] % 5 == 0
        if is_so != held_out:
            file.unlink()


@pytest.mark.parametrize(
    ("change", "options", "message"),
    [
        (lambda p: p.rename(p.with_name("others")), (), "No such file .*photos"),
        (lambda p: (p / "bright").rename(p / ".b"), (), r"two .* classes \['dark'\]"),
        (lambda p: (p / "cat").mkdir(), (), r"none to train on for \['cat'\]"),
        (lambda p: leave(p, "dark", True), (), r"none to train on for \['dark'\]"),
        (lambda p: leave(p, "*", False), (), r"some to hold out.* train on for \[\]"),
        (lambda p: (p / "dark").rename(p / os.fsdecode(b"\xff")), (), "surrogates not"),
        (str, ("--ratio", 100), "sigma="),
        (str, ("--start-from", "photos/dark/0.jpg"), "filepath=photos/dark/0.jpg"),
    ],
)
def test_refused_before_the_training(
    own_data, main, photos, tmp_path, change, options, message
):
    change(photos)
    with pytest.raises(SystemExit, match="error: .*" + message):
        main(own_data, *SMALL, *options)
    assert not (tmp_path / "runs").exists()


def test_the_page_runs(tmp_path, monkeypatch):
    """Its blocks, one after the other, in a folder with photos."""
    monkeypatch.chdir(tmp_path)
    text = re.sub(r"epochs=\d+", "epochs=1", "".join(code("docs/own_data")))
    Path("page.py").write_text(text, encoding="utf-8")
    write_folder(tmp_path / "photos", count=4)
    page = runpy.run_path("page.py")
    assert page["network"].output_shape == (None, 7)
    image = np.random.default_rng(0).random((1, 120, 160, 3)).astype("float32")
    assert page["backbone"](image).shape == (1, 4, 120, 160, 24)
    (answer,) = classify(page["trained"], image)
    assert answer.name in {"bright", "dark"}


@pytest.fixture
def known(tmp_path):
    """`known.keras`; `plain.keras` is the same but for what it knows of images."""
    plain = gauss_der_resnet((16, 16, 3), 2, [4], 1.5, [0.7, 1.4], order=1)
    plain.save(tmp_path / "plain.keras")
    model = with_preprocess(plain, Preprocess(["dark", "bright"], 12))
    model.save(tmp_path / "known.keras")
    return model


@pytest.fixture
def predict(script, main, known):
    return lambda *arguments: main(script("predict"), *arguments)


def test_a_line_tells_what_is_seen_in_a_file(predict, known, tmp_path):
    path = write_image(tmp_path / os.fsdecode(b"a\xff.png"), (40, 9, 3), 20)
    for options in (), ("--object-size", 30):  # the name is not in UTF-8
        (answer,) = classify(known, path, *options[1:])
        name, share = answer.top[0]
        (line,) = predict("known.keras", path, *options).splitlines()
        assert line.startswith(f"{tmp_path}/a\\udcff.png: {name} {100 * share:.1f} %, ")
        assert line.endswith(f"σ₀ = {answer.sigma0:.2g}")


def test_names_and_size_can_be_options(predict, tmp_path):
    path = write_image(tmp_path / "one.png", value=150)
    options = ("--side", 12, "--classes", "dark", "bright")
    assert predict("plain.keras", path, *options) == predict("known.keras", path)


def test_what_the_network_knows_stays_where_no_option_says_otherwise(predict, tmp_path):
    path = write_image(tmp_path / "one.png", value=150)
    expected = predict("known.keras", path)
    assert predict("known.keras", path, "--side", 12) == expected
    renamed = predict("known.keras", path, "--classes", "night", "day")
    assert renamed == expected.replace("dark", "night").replace("bright", "day")


def test_the_other_files_go_on(predict, tmp_path, capsys):
    (tmp_path / "text.png").write_text("no image")
    good = [write_image(tmp_path / f"{n}.png") for n in (1, 2)]
    with pytest.raises(SystemExit) as stopped:
        predict("known.keras", tmp_path / "none.png", good[0], "text.png", good[1])
    errors = str(stopped.value).splitlines()
    assert errors[0].startswith(f"error: {tmp_path / 'none.png'} cannot be read")
    assert errors[1].startswith("text.png cannot be read") and len(errors) == 2
    printed = capsys.readouterr().out.splitlines()
    assert [line.split(":")[0] for line in printed] == list(map(str, good))


def test_the_file_of_a_network_brings_no_code(predict, tmp_path):
    image = keras.Input((16, 16, 3))
    x = keras.layers.Lambda(lambda x: x[:, 0, 0])(image)
    keras.Model(image, x).save(tmp_path / "code.keras")
    with pytest.raises(SystemExit, match=r"error: .*Lambda"):
        predict("code.keras", write_image(tmp_path / "one.png"))
