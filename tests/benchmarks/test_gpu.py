"""The benchmark for GPUs, quick, on whatever device there is, without TensorFlow."""

import json

import numpy as np
import pytest

from keras_gdrn.models import gauss_der_resnet
from keras_gdrn.tuning import multiply_adds
from tests import _reference

pytest.importorskip("jax")


@pytest.mark.slow
def test_all_is_measured_in_pieces(on_jax, gpu, tmp_path):
    plan = gpu("plan")
    quick = ("gpu/run.py", "--quick", "--out", tmp_path, "--max-minutes")
    pieces = [on_jax(*quick, minutes) for minutes in (0, 60)]
    assert [piece.returncode for piece in pieces] == [0, 0], pieces[-1].stderr
    outputs = [piece.stdout for piece in pieces]
    assert ["Out of time" in output for output in outputs] == [True, False]
    # Each piece names what it measures, and no measurement takes place twice.
    lines = (tmp_path / "measurements.jsonl").read_text("utf-8").splitlines()[1:]
    keys = [json.loads(line)["key"] for line in lines]
    named = [line.split(", ") for out in outputs for line in out.splitlines()]
    assert list(map(", ".join, keys)) == [
        ", ".join(words) for words in named if words[0] in ("peak", *plan.PARTS)
    ]
    assert len(keys) == len(set(map(tuple, keys))) == 2 + 1 + 1 + 2 * 7 + 2
    results = json.loads((tmp_path / "gpu.json").read_text("utf-8"))["results"]
    check_errors([result for result in results if result["key"][0] == "errors"])
    check_speed([result for result in results if result["key"][0] == "speed"])
    preset = plan.QUICK.presets["tiny"]
    check_operations(results, preset)
    page = (tmp_path / "gpu.md").read_text("utf-8")
    assert page.count("\n## ") == 4
    assert all(key[-1] in page for key in keys[:-2])


def check_errors(results):
    for result in results:
        for of in result["float32"]:
            assert 1e-8 < result["float32"][of] < 1e-5
            assert 1e-4 < result["float16"][of] < result["bfloat16"][of] / 3
        assert result.get("truncation", 0.0) < 2e-3


def check_speed(results):
    for result in results:
        assert (result["key"][-1] == "3×3 ResNet") == (result["ratio"] == 1)
        assert min(result["seconds"], result["compiling"], result["memory"]) > 0
        assert 0 < result["share of products"] <= result["share"] < 1


def check_operations(results, preset):
    """XLA's number of operations is that of the package, and some additions."""
    (found,) = (
        result
        for result in results
        if result["key"][-2:] == ["inference", "GaussDerResNet"]
    )
    model = gauss_der_resnet(**vars(preset))
    expected = 2 * multiply_adds(model) * found["images"]
    assert expected < found["operations"] < 1.3 * expected


def test_reference_is_the_definition(gpu):
    random = np.random.default_rng(0)
    x, kernel = random.normal(size=(2, 9, 11, 3)), random.normal(size=(5, 3, 4))
    y = gpu("errors").by_operators(x, kernel, sigma=1.7)
    arguments = (x, kernel, gpu("contenders").INDICES, 1.7, "zero")
    np.testing.assert_allclose(y, _reference.jet_layer(*arguments), atol=1e-10)


def test_what_does_not_fit_the_memory_is_a_result(gpu):
    import jax

    def too_large():
        raise jax.errors.JaxRuntimeError("RESOURCE_EXHAUSTED: Out of memory\n(…)")

    failed = {"failed": "RESOURCE_EXHAUSTED: Out of memory"}
    assert gpu("speed").or_failure(too_large) == failed


def test_the_journal_is_of_one_device_and_drops_a_torn_line(gpu, tmp_path):
    Journal = gpu("journal").Journal
    file, about = tmp_path / "new" / "measurements.jsonl", {"device": "σ"}
    Journal(file, about).add(("a", "b"), {"seconds": 1.0})
    whole = file.read_text("utf-8")
    file.write_text(whole + '{"key": ["c"], "res', "utf-8")
    journal = Journal(file, about)
    assert ("a", "b") in journal and ("c",) not in journal
    assert journal.of("a") == {("b",): {"seconds": 1.0}}
    assert file.read_text("utf-8") == whole
    with pytest.raises(ValueError, match=r"`out` must be .* Received: .*'device': 'σ'"):
        Journal(file, {"device": "another"})


def test_batches_grow_until_one_does_not_fit(gpu, tmp_path):
    plan = gpu("plan")
    journal = gpu("journal").Journal(tmp_path / "measurements.jsonl", {})
    asked = []
    for key, _ in plan.units(plan.FULL, ("batches",), "bfloat16", journal):
        asked.append(key)
        peak = {"operations": 1.0, "bandwidth": 1.0, "source": "measured"}
        fits = key[0] == "peak" or int(key[-1]) <= 64
        journal.add(key, peak if fits else {"failed": "out of memory"})
    assert [key[-1] for key in asked] == ["bfloat16", "16", "32", "64", "128"]
