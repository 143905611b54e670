"""What the examples share: test data, and the record of a run."""

import datetime
import json
import math
import os
import platform
import sys
import zipfile
from collections.abc import Iterator, Mapping, Sequence
from importlib.metadata import version
from pathlib import Path
from typing import Any

# Otherwise TensorFlow greets a machine without a GPU by several lines of errors.
os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")

import keras
import numpy as np
import tensorflow as tf
from sources import Source

import keras_gdrn
from keras_gdrn.evaluation import (
    ScaleGeneralization,
    ScaleSelectionHistogram,
    scale_generalization,
    scale_selection_histogram,
)
from keras_gdrn.layers import ScaleChannels
from keras_gdrn.visualization import (
    markdown_table,
    plot_scale_generalization,
    plot_scale_selection_histogram,
    plot_sizes,
    size_label,
)

TFDS = Source()
# Of a test: images at a time, and bytes of the widest map of all of them.
LARGEST, MAP_BYTES = 50, 2**29
# A progress bar on a terminal, one line for each epoch in a log file.
VERBOSE = 1 if sys.stdout.isatty() else 2


def load_network(path: Path) -> keras.Model:
    """The model in a `.keras` file, which runs no code of its own when it is loaded.

    An error says what is wrong with the file.
    """
    with path.open("rb") as file:  # the error of one that is not there tells itself
        if not zipfile.is_zipfile(file):
            raise ValueError(f"{path} is no Keras model, which is a zip archive.")
    try:
        return keras.saving.load_model(path, safe_mode=True)
    except Exception as error:  # Keras lets through whatever a damaged file raises
        raise ValueError(f"{path} cannot be loaded as a network: {error}") from error


def save_network(model: keras.Model, path: Path) -> None:
    """Writes a `.keras` file that is there entirely or not at all."""
    partial = path.with_name("partial.keras")
    model.save(partial)
    os.replace(partial, path)


def write_whole(path: Path, text: str) -> None:
    """Writes a text file that is there entirely or not at all."""
    partial = path.with_name(f"partial-{path.name}")
    partial.write_text(text, encoding="utf-8")
    os.replace(partial, path)


def test_sets(
    name: str, factors: Sequence[float], source: Source = TFDS, **options
) -> dict[float, tf.data.Dataset]:
    """The test set at each size factor."""
    return {
        factor: source.batches(name, "test", factor, **options) for factor in factors
    }


def sample_images(
    name: str,
    factors: Sequence[float],
    source: Source = TFDS,
    count: int = 4,
    canvas: tuple[int, int] | None = None,
) -> dict[float, np.ndarray]:
    """A few test images at each size factor."""
    options = {"canvas": canvas, "limit": count}
    return {
        factor: source.arrays(name, "test", factor, **options)[0] for factor in factors
    }


def test_batch(model: keras.Model, canvas: tuple[int, int]) -> int:
    """How many test images at a time: none of their maps needs more than `MAP_BYTES`.

    But for one image alone, which may.
    """
    scales, network = 1, model
    for layer in model.layers:
        if isinstance(layer, ScaleChannels):
            scales, network = len(layer.sigma0), layer.network
    layers = network.layers if isinstance(network, keras.Model) else [network]
    widest = max(layer.output.shape[-1] for layer in layers)
    return max(1, min(LARGEST, MAP_BYTES // (4 * scales * widest * math.prod(canvas))))


def with_progress(
    tests: Mapping[float, tf.data.Dataset],
) -> dict[float, Iterator[tuple]]:
    """The same batches, to be read once, with one progress bar for all of them."""
    batches = sum(int(data.cardinality()) for data in tests.values())
    bar = keras.utils.Progbar(batches, verbose=VERBOSE)

    def counted(data: tf.data.Dataset) -> Iterator[tuple]:
        for batch in data:
            yield batch
            bar.add(1)

    return {factor: counted(data) for factor, data in tests.items()}


def parameters(model: keras.Model) -> int:
    """The number of trainable parameters, which is what the paper counts."""
    return sum(math.prod(weight.shape) for weight in model.trainable_weights)


def evaluate(
    model: keras.Model, tests: Mapping[float, tf.data.Dataset]
) -> tuple[ScaleGeneralization, ScaleSelectionHistogram | None]:
    """Accuracy at each size factor and, where there are scales, which decide."""
    if not any(isinstance(layer, ScaleChannels) for layer in model.layers):
        return scale_generalization(model, with_progress(tests)), None
    histogram = scale_selection_histogram(model, with_progress(tests))
    return ScaleGeneralization(histogram.factors, histogram.accuracies), histogram


def write_results(
    out: Path,
    networks: Mapping[str, ScaleGeneralization],
    histogram: ScaleSelectionHistogram | None,
    images: Mapping[float, np.ndarray],
    record: Mapping[str, Any],
) -> None:
    """Prints the accuracies; writes them and the pictures, and `results.json` last."""
    table = accuracy_table(networks)
    print(f"\nAccuracy at each size factor (training: 1)\n\n{table}\n")
    plot_scale_generalization(networks).savefig(out / "scale_generalization.png")
    plot_sizes(images).savefig(out / "sizes.png")
    record = {
        **record,
        "command": " ".join(["python", *sys.argv]),
        "date": datetime.date.today().isoformat(),
        "environment": environment(),
        "factors": list(next(iter(networks.values())).factors),
        "accuracies": {name: list(r.accuracies) for name, r in networks.items()},
    }
    if histogram is not None:
        plot_scale_selection_histogram(histogram).savefig(out / "scale_selection.png")
        record["sigma0"] = list(histogram.sigma0)
        record["scale_selection"] = histogram.shares.tolist()
    write_whole(out / "results.md", _markdown(table, record))
    write_whole(out / "results.json", json.dumps(record, indent=2) + "\n")
    print(f"Table and pictures are in {out}")


def accuracy_table(networks: Mapping[str, ScaleGeneralization]) -> str:
    """Markdown table with aligned columns: a row for each network."""
    factors = next(iter(networks.values())).factors
    rows = [["network", *(size_label(factor) for factor in factors)]]
    for name, result in networks.items():
        rows.append([name, *(f"{accuracy:.3f}" for accuracy in result.accuracies)])
    return markdown_table(rows)


def environment() -> dict[str, Any]:
    """Versions and hardware, for the record."""
    packages = ("keras", "tensorflow", "numpy", "scikit-learn")
    gpus = tf.config.list_physical_devices("GPU")
    details = map(tf.config.experimental.get_device_details, gpus)
    return {
        "keras_gdrn": keras_gdrn.__version__,
        "python": platform.python_version(),
        **{name: version(name) for name in packages},
        "backend": keras.backend.backend(),
        "system": platform.platform(),
        "processor": _processor(),
        "cores": os.cpu_count(),
        "gpus": [detail.get("device_name", "GPU") for detail in details],
    }


def _processor() -> str:
    info = Path("/proc/cpuinfo")
    lines = info.read_text(encoding="utf-8").splitlines() if info.exists() else []
    names = [line.split(":", 1)[1].strip() for line in lines if "model name" in line]
    return names[0] if names else platform.processor() or platform.machine()


def _markdown(table: str, record: Mapping[str, Any]) -> str:
    found = record["environment"]
    hardware = ", ".join(
        [f"{found['cores']} cores of {found['processor']}", *found["gpus"]]
    )
    times = ", ".join(f"{what} {s:.0f} s" for what, s in record["seconds"].items())
    return (
        f"# Accuracy at each size factor (training: 1)\n\n{table}\n\n"
        f"- Command: `{record['command']}`\n"
        f"- Time: {times} on {hardware}\n"
        f"- Versions: Keras {found['keras']} on {found['backend']}, TensorFlow "
        f"{found['tensorflow']}, keras_gdrn {found['keras_gdrn']}\n"
        f"- Settings: settings.json\n"
    ) + (f"- Maps: {record['maps']}\n" if "maps" in record else "")
