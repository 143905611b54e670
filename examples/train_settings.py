"""The settings of `train.py`: the paper's, where no option is given."""

import argparse
import dataclasses
from pathlib import Path

from keras_gdrn.data import DATASETS, SIZE_FACTORS
from keras_gdrn.kernels import BOUNDARIES
from keras_gdrn.models import PRESETS, Preset

_DIGITS = Preset((40, 40, 1), (8, 12, 12, 16, 16), 1.25, scale_dropout=0.2)

# Network; epochs of both stages; batch sizes of both stages (Appendix A.4).
DEFAULTS = {
    "digits": (_DIGITS, (8, 1), (32, 32)),
    "mnist": (PRESETS["rescaled_fashion_mnist"], (16, 16), (128, 64)),
    "fashion_mnist": (PRESETS["rescaled_fashion_mnist"], (16, 16), (128, 64)),
    "cifar10": (PRESETS["rescaled_cifar10"], (40, 50), (128, 45)),
    "stl10": (PRESETS["rescaled_stl10"], (50, 70), (64, 17)),
}
FLIPPED = ("cifar10", "stl10")


@dataclasses.dataclass(frozen=True)
class Settings:
    """All that decides the result."""

    dataset: str
    train_split: str
    widths: tuple[int, ...]
    ratio: float
    sigma0: tuple[float, ...]
    pooling: str
    scale_dropout: float
    pretrain_epochs: int
    pretrain_batch_size: int
    pretrain_learning_rate: float
    epochs: int
    batch_size: int
    learning_rate: float
    weight_decay: float
    factors: tuple[float, ...]
    limit: int | None
    test_limit: int | None
    canvas: int
    boundary: str
    mixed_precision: str | None
    seed: int


def parse(description: str | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        description=description, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    add = parser.add_argument
    add("--dataset", choices=list(DEFAULTS), required=True)
    add("--data-dir", help="directory of TensorFlow Datasets")
    add(
        "--train-split",
        choices=("train", "train+validation"),
        default="train+validation",
        help="train alone shows the accuracy on validation after each epoch",
    )
    add("--widths", type=int, nargs="+", help="of the first layer and of each block")
    add("--ratio", type=float, help="of the scales of successive layers")
    add("--sigma0", type=float, nargs="+", help="initial scales of the scale channels")
    add("--pooling", choices=("max", "logsumexp", "average"), help="over scales")
    add("--scale-dropout", type=float, help="probability to leave a channel out")
    add("--pretrain-epochs", type=int, help="with one scale channel, 0 for none")
    add("--pretrain-batch-size", type=int)
    add("--pretrain-learning-rate", type=float, default=0.01)
    add("--epochs", type=int, help="with all scale channels")
    add("--batch-size", type=int)
    add("--learning-rate", type=float, help="0.005, without a first stage 0.01")
    add("--weight-decay", type=float, default=0.025)
    add("--factors", type=float, nargs="+", default=SIZE_FACTORS, help="sizes to test")
    add("--limit", type=int, help="train on only so many images")
    add("--test-limit", type=int, help="test on only so many images; default --limit")
    add("--canvas", type=int, help="pixels of the training images' canvas")
    add("--boundary", choices=BOUNDARIES, default="zero", help="of the convolutions")
    add("--mixed-precision", choices=("float16", "bfloat16"))
    add("--jit", action="store_true", help="compile by XLA (a GPU does by default)")
    add("--seed", type=int, default=0)
    add("--out", type=Path, help="folder of the run; default runs/<dataset>")
    options = parser.parse_args()
    options.out = options.out or Path("runs") / options.dataset
    return options


def settings_of(options: argparse.Namespace) -> Settings:
    """The options given, and the data set's defaults for the others."""
    preset, epochs, batch_sizes = DEFAULTS[options.dataset]
    names = [field.name for field in dataclasses.fields(Settings)]
    given = {name: getattr(options, name) for name in names}
    defaults = {
        "widths": preset.widths,
        "ratio": preset.ratio,
        "sigma0": preset.sigma0,
        "pooling": preset.scale_pooling,
        "scale_dropout": preset.scale_dropout,
        "pretrain_epochs": epochs[0],
        "pretrain_batch_size": batch_sizes[0],
        "epochs": epochs[1],
        "batch_size": batch_sizes[1],
        "test_limit": options.limit,
        "canvas": DATASETS[options.dataset].canvas,
        "learning_rate": 0.01 if given["pretrain_epochs"] == 0 else 0.005,
    }
    for name, default in defaults.items():
        given[name] = default if given[name] is None else given[name]
    return Settings(
        **{name: tuple(v) if isinstance(v, list) else v for name, v in given.items()}
    )
