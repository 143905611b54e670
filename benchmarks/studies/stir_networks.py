"""What `stir.py` trains: the package's network, and what one would take instead.

All end in the maximum over all positions and have about as many weights. The package's
network sees each digit of MNIST turned a little. The peers are a plain
network of 3×3 convolutions, alone; with objects that are resized in training to any
size; and applied to the image at nine sizes, the largest score of all.
"""

import dataclasses
from collections.abc import Callable

import keras
import numpy as np
from foveation import Foveation
from keras import layers
from networks import lit
from PIL import Image
from scipy.ndimage import affine_transform

from keras_gdrn.data import STIR_SIZES
from keras_gdrn.layers import ScaleChannels, ScalePooling
from keras_gdrn.models import gauss_der_resnet, with_input_shape, with_sigma0

OURS, SIDE = "gauss_der", 64
SCALES = tuple(2 ** (k / 2) for k in range(-2, 4))


def turned(images: np.ndarray, copies: int, seed: int) -> np.ndarray:
    """So many copies of each, its object turned by up to 15° and sheared by .15."""
    random = np.random.default_rng(seed)
    made = np.empty((copies, *images.shape), "float32")
    for index in np.ndindex(made.shape[:2]):
        image = images[index[1]]
        turn, shear = random.uniform(-1, 1, 2) * (np.pi / 12, 0.15)
        rotation = [[np.cos(turn), -np.sin(turn)], [np.sin(turn), np.cos(turn)]]
        matrix = np.array(rotation) @ [[1, 0], [shear, 1]]
        middle = np.array([(part.start + part.stop - 1) / 2 for part in lit(image)])
        offset = middle - matrix @ middle
        made[index][..., 0] = affine_transform(image[..., 0], matrix, offset, order=1)
    return made.reshape(-1, *images.shape[1:])


def resized(images: np.ndarray, copies: int, seed: int) -> np.ndarray:
    """So many copies of each, its object of any of the sizes, anywhere."""
    random = np.random.default_rng(seed)
    made = np.zeros((copies, *images.shape[:3]), "float32")
    for index in np.ndindex(made.shape[:2]):
        rows, columns = lit(images[index[1]])
        part = images[index[1], rows, columns, 0]
        scale = random.choice(STIR_SIZES) / max(part.shape)
        height, width = (max(1, round(scale * length)) for length in part.shape)
        object_ = Image.fromarray(part).resize(
            (width, height), Image.Resampling.BICUBIC
        )
        y, x = (random.integers(SIDE + 1 - length) for length in (height, width))
        made[index][y : y + height, x : x + width] = np.clip(object_, 0, 1)
    return made.reshape(-1, *images.shape[1:])


@dataclasses.dataclass(frozen=True)
class Network:
    """A network and its training in a scenario.

    Attributes:
        build: The network that is trained, for a number of classes.
        epochs: On emoji and on MNIST.
        side: Of the training images.
        learning_rate: The highest one.
        copies: Of each training image, by data; none for the images as they are.
        copied: Makes them.
        tested: The trained network as it is tested, on 64×64 pixels.
        trained_sigma0: Initial scales in training, of those in `SCALES`.
    """

    build: Callable[[int], keras.Model]
    epochs: dict[str, int]
    side: int = SIDE
    learning_rate: float = 0.01
    copies: dict[str, int] = dataclasses.field(default_factory=dict)
    copied: Callable[..., np.ndarray] = turned
    tested: Callable[[keras.Model], keras.Model] = lambda model: model
    trained_sigma0: tuple[float, ...] = ()


def of_scenario(name: str, scenario: int) -> Network:
    return GAUSS_DER[scenario] if name == OURS else PEERS[name]


def gauss_der(trained: slice, side: int, emoji: int, copies: int) -> Network:
    def build(classes: int) -> keras.Model:
        return gauss_der_resnet(
            (side, side, 1),
            classes,
            widths=(12, 16, 24, 32),
            ratio=1.35,
            sigma0=SCALES[trained],
            spatial_selection="max",
            head_initializer="he_uniform",
        )

    def at_all_scales(model: keras.Model) -> keras.Model:
        return with_sigma0(with_input_shape(model, (SIDE, SIDE, 1)), SCALES)

    options = {"side": side, "trained_sigma0": SCALES[trained]}
    options |= {"copies": {"mnist": copies}, "tested": at_all_scales}
    return Network(build, {"emoji": emoji, "mnist": 1}, **options)


# Epochs on emoji were chosen on each validation split, copies of MNIST on that of the
# first scenario; in the last one there is no time for more than one.
GAUSS_DER = {
    1: gauss_der(slice(1, 3), 40, emoji=10, copies=4),
    2: gauss_der(slice(3, 5), 56, emoji=16, copies=4),
    3: gauss_der(slice(4, 6), SIDE, emoji=16, copies=4),
    4: gauss_der(slice(0, 6), SIDE, emoji=6, copies=1),
}


def cnn(classes: int) -> keras.Model:
    """Seven convolutions, three halvings; an answer sees 52×52 pixels."""
    x = image = keras.Input((SIDE, SIDE, 1))
    for index, filters in enumerate((12, 12, 16, 16, 24, 24, 32)):
        x = layers.MaxPooling2D(2)(x) if index in (2, 4, 6) else x
        x = layers.Conv2D(filters, 3, padding="same", use_bias=False)(x)
        x = layers.BatchNormalization(momentum=0.9, epsilon=1e-5)(x)
        x = layers.ReLU()(x)
    scores = layers.Conv2D(classes, 1)(x)
    return keras.Model(image, layers.GlobalMaxPooling2D()(scores), name="cnn")


def pyramid(classes: int) -> keras.Model:
    """The same on the image as it is, and made smaller, up to four times."""
    image = keras.Input((SIDE, SIDE, 1))
    channel = keras.Model(image, cnn(classes)(Foveation(SIDE)(image)))
    scores = ScaleChannels(channel, [2 ** (k / 4) for k in range(9)])(image)
    return keras.Model(image, ScalePooling("max")(scores), name="pyramid")


PEERS = {
    "cnn": Network(cnn, {"emoji": 45, "mnist": 10}),
    "cnn_resized": Network(
        cnn,
        {"emoji": 10, "mnist": 4},
        learning_rate=0.003,
        copies={"emoji": 10, "mnist": 10},
        copied=resized,
    ),
    "pyramid": Network(pyramid, {"emoji": 30, "mnist": 3}, learning_rate=0.003),
}
