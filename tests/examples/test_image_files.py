"""Image files as they are looked at; and such as would take all memory."""

import inspect
import io
import os
import sys
from pathlib import Path

import numpy as np
import pytest
from PIL import Image

from tests.examples._images import write_folder, write_image


@pytest.fixture
def script(examples):
    import image_files

    return image_files


@pytest.mark.parametrize("channels", [1, 3])
@pytest.mark.parametrize("orientation", [1, 3, 6])
def test_the_way_up_that_a_camera_notes(script, tmp_path, orientation, channels):
    shown = np.zeros((30, 20, 3), "uint8")
    shown[:15] = 200  # bright above
    stored = {1: shown, 3: shown[::-1, ::-1], 6: np.rot90(shown)}[orientation]
    exif = Image.Exif()
    exif[0x0112] = orientation
    path = tmp_path / "photo.jpg"
    Image.fromarray(np.ascontiguousarray(stored)).save(path, exif=exif, quality=95)
    image = script.read_image(path, channels)
    assert image.shape == (30, 20, channels) and image.dtype == "uint8"
    assert image[:13].min() > 190 and image[17:].max() < 10


@pytest.mark.parametrize("channels", [1, 3])
@pytest.mark.parametrize("mode", ["L", "LA", "RGB", "RGBA", "P", "1", "I;16", "CMYK"])
def test_all_kinds_of_pixels(script, tmp_path, mode, channels):
    pixels = np.zeros((6, 4), "uint8")
    pixels[:, 2:] = 255
    if mode == "I;16":
        image = Image.fromarray(pixels.astype("uint16") * 257)
    else:
        image = Image.fromarray(pixels).convert("RGB").convert(mode)
    path = tmp_path / ("a.jpg" if mode == "CMYK" else "a.png")
    image.save(path)
    found = script.read_image(path, channels)
    np.testing.assert_array_equal(found > 128, np.dstack([pixels > 128] * channels))


@pytest.mark.parametrize("channels", [1, 3])
@pytest.mark.parametrize(
    ("mode", "transparency"),
    [
        *(("LA", None), ("RGBA", None), ("L", 0), ("1", 0), ("RGB", (0, 0, 0))),
        ("P", b"\0" + b"\xff" * 255),
    ],
)
def test_what_is_transparent_is_white(script, tmp_path, mode, transparency, channels):
    """Whatever color it hides; and no warning comes without the name of a file."""
    pixels = np.zeros((6, 4), "uint8")
    pixels[:, 2:] = 255
    image = Image.fromarray(pixels).convert("RGB").convert(mode)
    if transparency is None:
        image.putalpha(Image.fromarray(pixels))
    image.save(tmp_path / "a.png", transparency=transparency)
    assert script.read_image(tmp_path / "a.png", channels).min() == 255


def test_of_an_animation_the_first_image(script, tmp_path):
    frames = [Image.new("L", (4, 6), value) for value in (200, 10)]
    frames[0].save(tmp_path / "a.gif", save_all=True, append_images=frames[1:])
    assert np.unique(script.read_image(tmp_path / "a.gif", 3)).tolist() == [200]


def bomb(path, width, height):
    """A file of a few hundred bytes, of so many pixels."""
    Image.new("1", (width, height)).save(path)
    return path


@pytest.mark.parametrize(
    ("size", "message"),
    [
        ((20000, 2), r"32-fold\. Received: 20000x2 pixels"),
        ((1, 400), r"32-fold\. Received: 1x400 pixels"),
        ((12000, 12000), "decompression bomb"),
        ((20000, 20000), "decompression bomb"),
    ],
)
def test_absurd_sizes_are_refused(script, tmp_path, size, message):
    path = bomb(tmp_path / "a.png", *size)
    with pytest.raises(ValueError, match=rf"a\.png cannot be read .*{message}"):
        script.read_image(path, 3)


def test_other_formats_and_damage_are_refused(script, tmp_path):
    whole = io.BytesIO()
    Image.new("RGB", (40, 40)).save(whole, "PNG")
    contents = [b"no image", whole.getvalue()[:60], b"%!PS-Adobe-3.0 EPSF-3.0\n"]
    for content in contents:
        (tmp_path / "a.png").write_bytes(content)
        with pytest.raises(ValueError, match=r"a\.png cannot be read as an image"):
            script.read_image(tmp_path / "a.png", 3)


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
    bomb(folder / "dark" / "bomb.png", 20000, 2)
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
    (printed,) = capsys.readouterr().out.splitlines()
    told = ("a.webp", "beside.png", "bright/b.tif", "bright/c.heic", "dark/none")
    assert printed.startswith("left out: 7 other files or links to folders (")
    assert printed.endswith(": " + ", ".join(f"{folder}/{x}" for x in told) + ", ...")


def test_what_no_file_or_folder_should_be(script, tmp_path, monkeypatch, capsys):
    """A pipe, a link to itself, a folder that may not be read, a name not in UTF-8."""
    folder = write_folder(tmp_path / "photos", count=3)
    os.mkfifo(folder / "dark" / "a.png")
    (folder / "dark" / "b.png").symlink_to("b.png")
    write_image(folder / "dark" / "c" / "1.png")
    name = os.fsdecode(b"d\xff.png")
    (folder / "dark" / name).write_bytes(b"no image")
    entries = Path.iterdir

    def iterdir(path):
        if path.name == "c":
            raise PermissionError("denied")
        return entries(path)

    monkeypatch.setattr(Path, "iterdir", iterdir)
    train, test, _ = script.read_folder(folder, 8, 3, seed=0)
    assert len(train.labels) + len(test.labels) == 6
    printed = capsys.readouterr().out.splitlines()
    assert sorted(line.split(" cannot ")[0] for line in printed) == [
        f"left out: {folder}/dark/{name}"
        for name in ("a.png", "b.png", "c", r"d\udcff.png")
    ]


def test_folders_may_be_nested_deeper_than_calls(script, tmp_path, monkeypatch):
    path = write_image(tmp_path.joinpath("cat", *"d" * 200, "1.png"))
    limit = sys.getrecursionlimit()
    sys.setrecursionlimit(len(inspect.stack()) + 100)
    try:
        assert script.image_files(tmp_path / "cat") == ([path], [])
    finally:
        sys.setrecursionlimit(limit)


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
