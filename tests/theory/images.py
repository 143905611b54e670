"""Images known at every point of the plane, so that nothing is ever resampled.

Pixel n of an axis of N pixels lies at the coordinate `n - (N - 1) / 2`: the center of
an image is the origin, about which it is rescaled.
"""

from copy import copy

import numpy as np


class AnalyticImage:
    """Sum of Gabor functions, Gaussian blobs that carry a wave, over all of space.

    `f(x) = Σ_b a_b exp(-|x - c_b|² / 2 w_b²) cos(k_b · (x - c_b) + φ_b)`, with blobs of
    4 to 16 pixels, or of `finest` to 4 times that, and at most a radian of the wave to
    a blob's width.
    """

    def __init__(
        self, seed=0, dimensions=2, channels=3, blobs=60, extent=60.0, finest=4.0
    ):
        random = np.random.default_rng(seed)
        self.width = np.geomspace(finest, 4 * finest, blobs)
        self.center = random.uniform(-extent, extent, (dimensions, blobs))
        direction = random.normal(size=(dimensions, blobs))
        direction /= np.linalg.norm(direction, axis=0)
        self.wave = direction * random.uniform(0, 1, blobs) / self.width
        phase = np.exp(2j * np.pi * random.uniform(size=blobs))
        self.amplitude = random.uniform(-1, 1, (blobs, channels)) * phase[:, None]

    def __call__(self, *coordinates):
        """Values `(*spatial, channels)` on the grid of the axes' `coordinates`."""
        values = self.amplitude
        *outer, last = [self._along(axis, x) for axis, x in enumerate(coordinates)]
        for factor in outer:
            shape = (len(values), *(1,) * (values.ndim - 2), -1, 1)
            values = values[..., None, :] * factor.reshape(shape)
        values = np.einsum("b...c,bx->...xc", values, last, optimize=True)
        return values.real

    def _along(self, axis, x):
        offset = x - self.center[axis][:, None]
        width, wave = self.width[:, None], self.wave[axis][:, None]
        return np.exp(-0.5 * (offset / width) ** 2 + 1j * wave * offset)

    @property
    def dimensions(self):
        return len(self.center)


def coordinates(size):
    return np.arange(size) - (size - 1) / 2


def sample(image, size, factor=1.0, shift=0):
    """`f'(x) = f((x - shift) / factor)` as a batch of one image, float32.

    Args:
        shift: Translation in pixels of the rescaled image, one number for each axis
            or one for all.
    """
    shift = np.broadcast_to(shift, image.dimensions)
    axes = [(coordinates(size) - t) / factor for t in shift]
    return image(*axes)[None].astype("float32")


def magnified(image, factor):
    """The image with everything in it `factor` times as large."""
    result = copy(image)
    result.width = image.width * factor
    result.center = image.center * factor
    result.wave = image.wave / factor
    return result


def natural_images(size, offset, contrast=0.25, channels=3, seed=0):
    """Random image with the 1/f amplitudes of natural images, around `offset`."""
    random = np.random.default_rng(seed)
    frequency = np.hypot(np.fft.fftfreq(size)[:, None], np.fft.fftfreq(size))
    frequency[0, 0] = np.inf
    noise = np.fft.fft2(random.normal(size=(channels, size, size)))
    texture = np.fft.ifft2(noise / frequency).real
    texture *= contrast / texture.std(axis=(1, 2), keepdims=True)
    return (offset + np.moveaxis(texture, 0, -1))[None].astype("float32")


def twice(images):
    """Images of odd size, magnified by 2 about their center, without any blur.

    By the trigonometric polynomial through the pixels.
    """
    size = images.shape[1]
    spectrum = np.fft.fftshift(np.fft.fft2(images, axes=(1, 2)), axes=(1, 2))
    margins = [(0, 0), *[(size // 2 + 1, size - size // 2 - 1)] * 2, (0, 0)]
    padded = np.fft.ifftshift(np.pad(spectrum, margins), axes=(1, 2))
    values = 4 * np.fft.ifft2(padded, axes=(1, 2)).real
    return values[:, : 2 * size - 1, : 2 * size - 1].astype("float32")
