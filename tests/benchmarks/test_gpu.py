"""The benchmark for GPUs, quick, on whatever device there is, without TensorFlow."""

import json

import pytest

from keras_gdrn.models import gauss_der_resnet
from keras_gdrn.tuning import multiply_adds

pytest.importorskip("jax")


@pytest.mark.slow
def test_what_is_missing_is_measured(on_jax, gpu, tmp_path):
    done = on_jax("gpu/run.py", "--quick", "--out", tmp_path)
    assert done.returncode == 0, done.stderr
    file = tmp_path / "gpu.json"
    content = json.loads(file.read_text("utf-8"))
    results = content["results"]
    assert len(results) == 2 + 1 + 2
    assert all(name in done.stdout for name in results)
    errors = [found for name, found in results.items() if "errors" in name]
    for found in errors:
        for of in found["float32"]:
            assert 1e-8 < found["float32"][of] < 1e-5
            assert 1e-4 < found["float16"][of] < found["bfloat16"][of] / 3
    training, inference = (found for found in results.values() if found not in errors)
    assert len(training) == len(inference) == 5
    for name, found in training.items():
        assert (name == "3×3 ResNet") == (found["ratio"] == 1)
        assert min(found["seconds"], found["compiling"], found["memory"]) > 0
    # XLA's number of operations is that of the package, and some additions.
    found = inference["GaussDerResNet"]
    model = gauss_der_resnet(**vars(gpu("run").TINY))
    expected = 2 * multiply_adds(model) * found["images"]
    assert expected < found["operations"] < 1.3 * expected

    name, other = (next(n for n in results if part in n) for part in ("=", "training"))
    del results[name]
    results[other]["one pass of it"] = {"failed": "out of memory"}
    file.write_text(json.dumps(content), "utf-8")
    done = on_jax("gpu/run.py", "--quick", "--out", tmp_path)
    lines = done.stdout.splitlines()
    assert lines[:2] == [name, f"# {content['about']['device']}"]  # nothing else again
    page = (tmp_path / "gpu.md").read_text("utf-8")
    assert page in done.stdout and "| out of memory |" in page
    done = on_jax("gpu/run.py", "--quick", "--out", tmp_path, "--batch", 2)
    assert "`out` must be a new folder" in done.stderr and done.returncode == 1


def test_what_does_not_fit_the_memory_is_a_result(gpu, monkeypatch):
    import jax

    run = gpu("run")

    def too_large(*_):
        raise jax.errors.JaxRuntimeError("RESOURCE_EXHAUSTED: Out of memory\n(…)")

    monkeypatch.setattr(run, "step_of", too_large)
    options = type("Options", (), {"batch": 1, "quick": True, "precision": "float32"})
    found = run.speed(run.TINY, "training", options)
    failed = {"failed": "RESOURCE_EXHAUSTED: Out of memory"}
    assert len(found) == 5 and all(result == failed for result in found.values())
