"""The benchmark for GPUs, quick, on whatever device there is."""

import argparse
import math
from unittest import mock

import pytest

from tests import without
from tests._commands import cells

pytest.importorskip("jax")


def number(cell):
    return float(cell.split()[0])


@pytest.mark.slow
def test_errors_times_and_memory_are_measured(gpu):
    """On JAX, as if TensorFlow were not installed."""
    absent = (*without.TENSORFLOW, "keras_tuner")
    rows = cells(without.run(absent, "benchmarks/gpu/run.py", "--quick"))
    errors, steps = rows[2:8] + rows[10:13], rows[15:]
    layers = [f"{of}, σ = 4" for of in gpu("run").LAYERS]
    assert [name for name, *_ in errors[::3]] == [*layers, "tiny"]
    for name, _, *found in errors:
        float32, _, bfloat16, float16 = map(float, found)
        assert 1e-8 < float32 < 1e-5
        # A unit of the network that another format cuts off is no matter of bits.
        assert 1e-4 < float16 < bfloat16 / (1 if name == "tiny" else 3)
    whats = ["training of tiny"] * 2 + ["inference of tiny"] * 7
    assert [what for what, *_ in steps] == whats
    for _, name, _, time, ratio, memory, compiling, _ in steps:
        assert (name == "3×3 ResNet") == (ratio == "1.000")
        assert min(map(number, (time, memory, compiling))) > 0
    # XLA's number of operations is that of the convolutions, and some additions.
    (found,) = (row for row in steps if row[:2] == [whats[-1], "3×3 ResNet"])
    operations = 1e12 * number(found[-1]) * number(found[3]) / 1000
    settings = gpu("run").TINY
    pixels = math.prod(settings.input_shape[:2]) * number(found[2])
    network = gpu("run").contenders.plain_network(settings)
    kernels = (layer.kernel for layer in network.layers if hasattr(layer, "kernel"))
    expected = 2 * pixels * sum(math.prod(kernel.shape) for kernel in kernels)
    assert 0.9 * expected < operations < 1.3 * expected


def test_what_does_not_fit_the_memory_has_a_row(gpu, monkeypatch, capsys):
    run, failed = gpu("run"), "RESOURCE_EXHAUSTED: Out of memory"
    error = run.jax.errors.JaxRuntimeError(f"{failed}\n(…)")
    monkeypatch.setattr(run, "step_of", mock.Mock(side_effect=error))
    options = {"networks": run.NAMES, "repeats": 1, "precision": "float32"}
    options = argparse.Namespace(**options, quick=False)
    run.report_speed("training of tiny", run.TINY, "training", 1, options)
    assert capsys.readouterr().out.count(failed) == 7
