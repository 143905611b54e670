"""Measures TensorFlow on this machine's GPU in some minutes. One table.

    python benchmarks/gpu/on_tensorflow.py
    python benchmarks/gpu/on_tensorflow.py --preset digits --only float32 --batch 4

Trains six scale channels and, for comparison, one pass of the 3×3 ResNet of the same
widths, on random images, compiled by XLA as Keras does on a GPU; most of the time is
XLA's. For each precision: the error of the scores of the untrained network under XLA,
relative to float32 without XLA and TF32; seconds of the first step, the median of later
ones, and its ratio to the ResNet; and the memory of a training step. Paste the table
into an issue: so far nobody has run it on a GPU.
"""

import argparse
import datetime
import os
import sys
import time
from collections.abc import Callable
from pathlib import Path

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")
os.environ["KERAS_BACKEND"] = "tensorflow"
sys.path.append(str(Path(__file__).parents[1]))  # contenders, measure

import contenders
import keras
import measure
import numpy as np
import tensorflow as tf
from measure import print_header, print_row

from keras_gdrn.commands import errors_in_one_line, positive

# Keras' policy, and whether products of float32 are rounded to TF32.
PRECISIONS = {
    "float32": ("float32", False),
    "TF32": ("float32", True),
    "bfloat16": ("mixed_bfloat16", True),
    "float16": ("mixed_float16", True),
}
OURS, RESNET = "GaussDerResNet", contenders.ONE


def set_precision(name: str) -> None:
    policy, tf32 = PRECISIONS[name]
    keras.config.set_dtype_policy(policy)
    tf.config.experimental.enable_tensor_float_32_execution(tf32)


def scores(
    build: Callable, weights: list | None, images, xla: bool = True
) -> tuple[np.ndarray, list]:
    """Scores of the untrained network, and its weights."""
    model = build()
    if weights is not None:
        model.set_weights(weights)
    model.compile(jit_compile=xla)
    return np.asarray(model.predict_on_batch(images)), model.get_weights()


def step_times(build: Callable, images, repeats: int) -> tuple[float, float, float]:
    """Seconds of the first and of later training steps, and GB of memory."""
    keras.backend.clear_session()
    labels = np.arange(len(images)) % 10
    step = measure.model_step(build(), images, labels, xla=True)
    if has_gpu():
        tf.config.experimental.reset_memory_stats("GPU:0")
    start = time.perf_counter()
    step()
    first = time.perf_counter() - start
    later = float(np.median([measure.timed(step) for _ in range(repeats)]))
    return first, later, peak_gigabytes()


def device() -> str:
    """The name of the GPU, such as Tesla T4."""
    for gpu in tf.config.list_physical_devices("GPU"):
        return tf.config.experimental.get_device_details(gpu).get("device_name", "?")
    return "no GPU"


def has_gpu() -> bool:
    return bool(tf.config.list_physical_devices("GPU"))


def peak_gigabytes() -> float:
    """Of the GPU, or of this process."""
    if has_gpu():
        return tf.config.experimental.get_memory_info("GPU:0")["peak"] / 1e9
    return measure.peak_gigabytes()


@errors_in_one_line()
def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    add = parser.add_argument
    add("--preset", choices=contenders.PRESETS, default="rescaled_cifar10")
    add("--only", nargs="+", choices=PRECISIONS, default=["TF32", "float16"])
    add("--batch", type=positive(int), default=32)
    add("--repeats", type=positive(int), default=10)
    options = parser.parse_args()
    settings = contenders.PRESETS[options.preset]
    networks = contenders.network_contenders(settings, options.batch)
    shape = (options.batch, *settings.input_shape)
    images = np.random.default_rng(0).random(shape, "float32")
    today = datetime.date.today().isoformat()
    print(f"{device()}; {measure.machine()}; {today}")
    print(f"{options.preset}, {options.batch} images\n")
    print_header("precision", "error", "first step", "step", "to ResNet", "memory")
    ours, resnet = (networks[name][0] for name in (OURS, RESNET))
    set_precision("float32")
    exact, weights = scores(ours, None, images, xla=False)
    for name in options.only:
        set_precision(name)
        found, _ = scores(ours, weights, images)
        error = np.linalg.norm(found - exact) / np.linalg.norm(exact)
        first, later, memory = step_times(ours, images, options.repeats)
        _, of_resnet, _ = step_times(resnet, images, options.repeats)
        times = f"{first:.1f} s", f"{later:.3f} s", f"{later / of_resnet:.2f}"
        print_row(name, f"{error:.1e}", *times, f"{memory:.1f} GB")


if __name__ == "__main__":
    main()
