"""Image files as they are looked at; and such as would take all memory."""

import io
import os

import numpy as np
import pytest
from PIL import Image

from keras_gdrn.data import read_image


@pytest.mark.parametrize("channels", [1, 3])
@pytest.mark.parametrize("orientation", [1, 3, 6])
def test_the_way_up_that_a_camera_notes(tmp_path, orientation, channels):
    shown = np.zeros((30, 20, 3), "uint8")
    shown[:15] = 200  # bright above
    stored = {1: shown, 3: shown[::-1, ::-1], 6: np.rot90(shown)}[orientation]
    exif = Image.Exif()
    exif[0x0112] = orientation
    path = tmp_path / "photo.jpg"
    Image.fromarray(np.ascontiguousarray(stored)).save(path, exif=exif, quality=95)
    image = read_image(path, channels)
    assert image.shape == (30, 20, channels) and image.dtype == "uint8"
    assert image[:13].min() > 190 and image[17:].max() < 10


@pytest.mark.parametrize("channels", [1, 3])
@pytest.mark.parametrize("mode", ["L", "LA", "RGB", "RGBA", "P", "1", "I;16", "CMYK"])
def test_all_kinds_of_pixels(tmp_path, mode, channels):
    pixels = np.zeros((6, 4), "uint8")
    pixels[:, 2:] = 255
    if mode == "I;16":
        image = Image.fromarray(pixels.astype("uint16") * 257)
    else:
        image = Image.fromarray(pixels).convert("RGB").convert(mode)
    path = tmp_path / ("a.jpg" if mode == "CMYK" else "a.png")
    image.save(path)
    found = read_image(path, channels)
    np.testing.assert_array_equal(found > 128, np.dstack([pixels > 128] * channels))


@pytest.mark.parametrize("channels", [1, 3])
@pytest.mark.parametrize(
    ("mode", "transparency"),
    [
        *(("LA", None), ("RGBA", None), ("L", 0), ("1", 0), ("RGB", (0, 0, 0))),
        ("P", b"\0" + b"\xff" * 255),
    ],
)
def test_what_is_transparent_is_white(tmp_path, mode, transparency, channels):
    """Whatever color it hides; and no warning comes without the name of a file."""
    pixels = np.zeros((6, 4), "uint8")
    pixels[:, 2:] = 255
    image = Image.fromarray(pixels).convert("RGB").convert(mode)
    if transparency is None:
        image.putalpha(Image.fromarray(pixels))
    image.save(tmp_path / "a.png", transparency=transparency)
    assert read_image(tmp_path / "a.png", channels).min() == 255


def test_of_an_animation_the_first_image(tmp_path):
    frames = [Image.new("L", (4, 6), value) for value in (200, 10)]
    frames[0].save(tmp_path / "a.gif", save_all=True, append_images=frames[1:])
    assert np.unique(read_image(tmp_path / "a.gif", 3)).tolist() == [200]


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
def test_absurd_sizes_are_refused(tmp_path, size, message):
    path = bomb(tmp_path / "a.png", *size)
    with pytest.raises(ValueError, match=rf"a\.png cannot be read .*{message}"):
        read_image(path, 3)


def test_other_formats_and_damage_are_refused(tmp_path):
    whole = io.BytesIO()
    Image.new("RGB", (40, 40)).save(whole, "PNG")
    contents = [b"no image", whole.getvalue()[:60], b"%!PS-Adobe-3.0 EPSF-3.0\n"]
    for content in contents:
        (tmp_path / "a.png").write_bytes(content)
        with pytest.raises(ValueError, match=r"a\.png cannot be read as an image"):
            read_image(tmp_path / "a.png", 3)


def test_a_pipe_is_not_waited_for(tmp_path):
    os.mkfifo(tmp_path / "pipe.png")
    with pytest.raises(ValueError, match="must be a regular file"):
        read_image(tmp_path / "pipe.png", 3)


COLORS = np.random.default_rng(0).integers(0, 256, (6, 4, 3)).astype("uint8")


@pytest.mark.parametrize("channels", [1, 3])
def test_images_in_memory_are_those_of_files(tmp_path, channels):
    Image.fromarray(COLORS).save(tmp_path / "a.png")
    expected = read_image(tmp_path / "a.png", channels)
    for image in (
        Image.fromarray(COLORS),
        COLORS,
        COLORS / 255,
        COLORS.astype("float32"),
        np.dstack([COLORS, np.full((6, 4), 255, "uint8")]),
    ):
        np.testing.assert_array_equal(read_image(image, channels), expected)


@pytest.mark.parametrize("shape", [(6, 4), (6, 4, 1)])
def test_gray_arrays(shape):
    gray = COLORS[..., 0].reshape(shape)
    expected = np.dstack([gray.reshape(6, 4)] * 3)
    np.testing.assert_array_equal(read_image(gray, 3), expected)
    assert read_image(gray, 1).shape == (6, 4, 1)


@pytest.mark.parametrize(
    ("array", "message"),
    [
        (2 * (COLORS / 255) - 1, "values of an image must be of 0 to 255 or of 0 to 1"),
        (257 * COLORS.astype("uint16"), "with values of"),
        (np.full((4, 4), np.nan), "with values of nan"),
        (np.zeros((2, 6, 4, 3)), r"of the shape \(2, 6, 4, 3\)"),
        (np.zeros((6, 4, 2)), r"of the shape \(6, 4, 2\)"),
        (np.zeros((1, 400), "uint8"), "32-fold"),
    ],
)
def test_other_arrays_are_refused(array, message):
    with pytest.raises(ValueError, match=message):
        read_image(array, 3)
