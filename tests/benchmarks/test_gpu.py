"""The benchmark for GPUs, quick, on whatever device there is."""

import argparse
import json
import os
import subprocess
import sys

import pytest

from keras_gdrn.models import gauss_der_resnet
from keras_gdrn.tuning import multiply_adds
from tests import without
from tests._commands import ROOT

pytest.importorskip("jax")


@pytest.fixture(scope="module")
def measured(tmp_path_factory):
    """The folder of a run on JAX, as if TensorFlow were not installed."""
    folder = tmp_path_factory.mktemp("gpu")
    blocked = ",".join((*without.TENSORFLOW, "keras_tuner"))
    command = ["-m", "tests.without", blocked, ROOT / "benchmarks/gpu/run.py"]
    done = subprocess.run(
        [sys.executable, *command, "--quick", "--out", folder],
        cwd=ROOT,
        env={**os.environ, "KERAS_BACKEND": "jax", "PYTHONPATH": str(ROOT)},
        capture_output=True,
        text=True,
        encoding="utf-8",
    )
    assert done.returncode == 0, done.stderr
    return folder


@pytest.mark.slow
def test_errors_times_and_memory_are_measured(measured, gpu):
    results = json.loads((measured / "gpu.json").read_text("utf-8"))
    *errors, training, inference = results.values()
    assert [name.split(" of ")[0] for name in results] == [
        *["errors"] * 3,
        "training",
        "inference",
    ]
    for found in errors:
        for of in found["float32"]:
            assert 1e-8 < found["float32"][of] < 1e-5
            assert 1e-4 < found["float16"][of] < found["bfloat16"][of] / 3
    assert len(training) == len(inference) == 5
    for name, found in training.items():
        assert (name == "3×3 ResNet") == (found["ratio"] == 1)
        assert min(found["seconds"], found["compiling"], found["memory"]) > 0
    # XLA's number of operations is that of the package, and some additions.
    found = inference["GaussDerResNet"]
    model = gauss_der_resnet(**vars(gpu("run").TINY))
    expected = 2 * multiply_adds(model) * found["images"]
    assert expected < found["operations"] < 1.3 * expected


@pytest.mark.slow
def test_the_same_command_measures_what_is_missing(measured, gpu, monkeypatch, capsys):
    run, file = gpu("run"), measured / "gpu.json"
    results = json.loads(file.read_text("utf-8"))
    name, *_, other = results
    missing = results.pop(name)
    results[other]["one pass of it"] = {"failed": "out of memory"}
    file.write_text(json.dumps(results), "utf-8")
    monkeypatch.setattr(run, "rounding_errors", lambda *_, **__: missing)
    monkeypatch.setattr(sys, "argv", ["run.py", "--quick", "--out", str(measured)])
    run.main()
    printed = capsys.readouterr().out
    title = f"# {run.jax.devices()[0].device_kind}"
    first, second, *_ = printed.splitlines()
    assert first == name and second.startswith(title)  # nothing else again
    page = (measured / "gpu.md").read_text("utf-8")
    assert page in printed and "| out of memory |" in page
    monkeypatch.setattr(sys, "argv", [*sys.argv, "--batch", "2"])
    with pytest.raises(SystemExit, match="batch: 32, now 2"):
        run.main()


def test_what_does_not_fit_the_memory_is_a_result(gpu, monkeypatch):
    run = gpu("run")

    def too_large(*_):
        raise run.jax.errors.JaxRuntimeError("RESOURCE_EXHAUSTED: Out of memory\n(…)")

    monkeypatch.setattr(run, "step_of", too_large)
    options = argparse.Namespace(batch=1, quick=True, precision="float32")
    found = run.speed(run.TINY, "training", options)
    failed = {"failed": "RESOURCE_EXHAUSTED: Out of memory"}
    assert len(found) == 5 and all(result == failed for result in found.values())
