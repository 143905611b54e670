"""Image files as they are looked at; and such as would take all memory."""

import io

import numpy as np
import pytest
from PIL import Image

from keras_gdrn.data import read_image

CHANNELS = pytest.mark.parametrize("channels", [1, 3])
HALF = np.repeat([[0, 0, 255, 255]], 6, axis=0).astype("uint8")
COLORS = np.random.default_rng(0).integers(0, 256, (6, 4, 3)).astype("uint8")


@CHANNELS
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


@CHANNELS
@pytest.mark.parametrize("mode", ["L", "LA", "RGB", "RGBA", "P", "1", "I;16", "CMYK"])
def test_all_kinds_of_pixels(tmp_path, mode, channels):
    image = Image.fromarray(HALF).convert("RGB")
    wide = Image.fromarray(HALF.astype("uint16") * 257)
    image = wide if mode == "I;16" else image.convert(mode)
    path = tmp_path / ("a.jpg" if mode == "CMYK" else "a.png")
    image.save(path)
    found = read_image(path, channels)
    np.testing.assert_array_equal(found > 128, np.dstack([HALF > 128] * channels))


def test_dark_images_of_16_bits_stay_dark(tmp_path):
    pixels = np.array([[0, 200, 300, 511]], "uint16")
    Image.fromarray(pixels).save(tmp_path / "dark.png")
    assert read_image(tmp_path / "dark.png", 1).max() <= 1


BLACK = b"\0" + b"\xff" * 255


@CHANNELS
@pytest.mark.parametrize(
    ("mode", "black"),
    [
        ("LA", None),
        ("RGBA", None),
        ("L", 0),
        ("1", 0),
        ("RGB", (0, 0, 0)),
        ("P", BLACK),
    ],
)
def test_what_is_transparent_is_white(tmp_path, mode, black, channels):
    """Whatever color it hides; and no warning comes without the name of a file."""
    image = Image.fromarray(HALF).convert("RGB").convert(mode)
    if black is None:
        image.putalpha(Image.fromarray(HALF))
    image.save(tmp_path / "a.png", transparency=black)
    assert read_image(tmp_path / "a.png", channels).min() == 255


def test_of_an_animation_the_first_image(tmp_path):
    frames = [Image.new("L", (4, 6), value) for value in (200, 10)]
    frames[0].save(tmp_path / "a.gif", save_all=True, append_images=frames[1:])
    assert np.unique(read_image(tmp_path / "a.gif", 3)).tolist() == [200]


@CHANNELS
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
    # An interpolation has overshot.
    beyond = np.where(COLORS == 255, 1.02, np.where(COLORS == 0, -0.02, COLORS / 255))
    np.testing.assert_array_equal(read_image(beyond, channels), expected)
    gray = COLORS[..., 0]
    wide = [Image.fromarray(gray.astype(kind)) for kind in ("int32", "float32")]
    wide.append(Image.fromarray(257 * gray.astype("int32")))
    wide.append(Image.fromarray((gray / 255).astype("float32")))
    for gray in (COLORS[..., 0], COLORS[..., :1], *wide):
        expected = np.dstack([COLORS[..., 0]] * channels)
        np.testing.assert_array_equal(read_image(gray, channels), expected)
    brighter_than_white = Image.fromarray(np.full((6, 4), 10**6, "int32"))
    assert read_image(brighter_than_white, channels).min() == 255


def png(width: int, height: int, mode: str = "1") -> bytes:
    """A few hundred bytes, of so many pixels."""
    file = io.BytesIO()
    Image.new(mode, (width, height)).save(file, "PNG")
    return file.getvalue()


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (png(20000, 2), r"32-fold\. Received: 20000x2 pixels"),
        (png(1, 400), r"32-fold\. Received: 1x400 pixels"),
        (png(12000, 12000), "decompression bomb"),
        (png(20000, 20000), "decompression bomb"),
        (png(40, 40, "RGB")[:60], ""),
        (b"no image", ""),
        (b"%!PS-Adobe-3.0 EPSF-3.0\n", ""),
        (2 * (COLORS / 255) - 1, r"from 0 to 1 or from 0 to 255\. .* from -1 to 1"),
        (257 * COLORS.astype("uint16"), "values from 0 to"),
        (np.full((4, 4), np.nan), "values from nan to nan"),
        (np.zeros((2, 6, 4, 3)), r"Received: .* shape \(2, 6, 4, 3\)"),
        (np.zeros((6, 4, 2)), r"Received: .* shape \(6, 4, 2\)"),
        (np.zeros((1, 400), "uint8"), "32-fold"),
    ],
)
def test_absurd_sizes_other_formats_and_damage_are_refused(tmp_path, content, message):
    if isinstance(content, bytes):
        (tmp_path / "a.png").write_bytes(content)
        content = tmp_path / "a.png"
        message = rf"a\.png cannot be read as an .*{message}"
    with pytest.raises(ValueError, match=message):
        read_image(content, 3)
