"""What a program for a GPU costs is read from its text."""

# ruff: noqa: E501
import importlib.util
import json
import sys
from types import SimpleNamespace

import pytest

from tests._commands import ROOT

PROGRAM = """
HloModule jit_step

%inner (a: bf16[8,64], b: bf16[64,16]) -> f32[8,16] {
  %a = bf16[8,64]{1,0} parameter(0)
  %b = bf16[64,16]{1,0} parameter(1)
  ROOT %dot.1 = f32[8,16]{1,0} dot(%a, %b), lhs_contracting_dims={1}, rhs_contracting_dims={0}
}

%body (s: (f32[8,16])) -> (f32[8,16]) {
  %s = (f32[8,16]{1,0}) parameter(0)
  %x = f32[8,16]{1,0} get-tuple-element(%s), index=0
  %copy.3 = f32[8,16]{1,0} copy(%x)
  ROOT %t = (f32[8,16]{1,0}) tuple(%copy.3)
}

ENTRY %main (p: bf16[8,64], q: bf16[64,16], i: bf16[2,9,9,3], k: bf16[3,3,3,4]) -> f32[8,16] {
  %p = bf16[8,64]{1,0} parameter(0)
  %q = bf16[64,16]{1,0} parameter(1)
  %i = bf16[2,9,9,3]{3,2,1,0} parameter(2)
  %k = bf16[3,3,3,4]{3,2,1,0} parameter(3)
  %gemm_fusion.7 = f32[8,16]{1,0} fusion(%p, %q), kind=kCustom, calls=%inner, metadata={op_name="jit(f)/transpose(jvp)/dot_general"}
  %cudnn-conv = (bf16[2,7,7,4]{3,2,1,0}, u8[0]{0}) custom-call(%i, %k), window={size=3x3}, dim_labels=b01f_01io->b01f, custom_call_target="__cudnn$convForward", metadata={op_name="jit(f)/conv"}
  %gemm.2 = (f32[8,16]{1,0}, s8[99]{0}) custom-call(%p, %q), custom_call_target="__cublas$lt$matmul", backend_config={"gemm_backend_config":{"dot_dimension_numbers":{"lhs_contracting_dimensions":["1"],"rhs_contracting_dimensions":["0"]}}}
  %start = (f32[8,16]{1,0}) tuple(%gemm_fusion.7)
  %loop = (f32[8,16]{1,0}) while(%start), condition=%body, body=%body, backend_config={"known_trip_count":{"n":"5"}}
  ROOT %out = f32[8,16]{1,0} get-tuple-element(%loop), index=0
}
"""


@pytest.fixture
def program():
    path = ROOT / "benchmarks" / "gpu" / "program.py"
    spec = importlib.util.spec_from_file_location("program", path)
    module = importlib.util.module_from_spec(spec)
    with pytest.MonkeyPatch.context() as patch:
        patch.setitem(sys.modules, "program", module)
        spec.loader.exec_module(module)
        yield module


def test_bytes_and_operations_of_each_kernel(program):
    product, convolution, of_library, copy = program.kernels(PROGRAM)
    assert of_library.kind == "__cublas$lt$matmul"
    assert (of_library.operations, of_library.dtype) == (product.operations, "bf16")
    assert (product.kind, product.source) == (
        "product, gemm fusion",
        "backward dot_general",
    )
    assert product.bytes == 2 * (8 * 64 + 64 * 16) + 4 * 8 * 16
    assert product.operations == 2 * 8 * 16 * 64
    assert convolution.kind == "__cudnn$convForward"
    outputs = 2 * 7 * 7 * 4
    assert convolution.bytes == 2 * (2 * 9 * 9 * 3 + 3 * 3 * 3 * 4 + outputs)
    assert convolution.operations == 2 * outputs * 9 * 3
    assert (copy.kind, copy.times) == ("copy", 5)


def test_three_convolutions_of_a_training_step_cost_the_same(program):
    """Forward, and the gradients in maps and in the kernel: by their operands."""
    line = (
        "  %{name} = ({result}, u8[0]{{0}}) custom-call({operands}), window={{size=3x3"
        '{pad}}}, dim_labels=b01f_o01i->b01f, custom_call_target="__cudnn$conv{name}"\n'
    )
    shapes = {"x": "f32[2,9,9,3]{3,2,1,0}", "y": "f32[2,9,9,4]{3,2,1,0}"}
    shapes["w"] = "f32[4,3,3,3]{3,2,1,0}"
    kinds = {"Forward": "xwy", "BackwardInput": "ywx", "BackwardFilter": "xyw"}
    text = "ENTRY %main () -> () {\n" + "".join(
        f"  %{name} = {shape} parameter(0)\n" for name, shape in shapes.items()
    )
    for name, (a, b, result) in kinds.items():
        found = {"result": shapes[result], "operands": f"%{a}, %{b}"}
        text += line.format(name=name, pad=" pad=1_1x1_1", **found)
    counted = [kernel.operations for kernel in program.kernels(text + "}\n")]
    assert counted == [2 * (2 * 9 * 9) * 9 * 3 * 4] * 3


def test_the_bound_is_the_longest_of_launch_memory_and_arithmetic(program):
    def seconds(moved, operations, dtype="bf16", times=1):
        kernel = program.Kernel("", "", "", moved, operations, dtype, times)
        return kernel.seconds

    assert seconds(1, 1) == program.LAUNCH
    assert seconds(program.BANDWIDTH, 1) == 1
    assert seconds(1, program.PEAK["bf16"]) == 1
    assert seconds(1, program.PEAK["bf16"], "f32", times=3) == 6


@pytest.mark.skipif(
    importlib.util.find_spec("jax") is None, reason="networks are traced by JAX"
)
def test_counts_are_printed_and_recorded(gpu, tmp_path, monkeypatch, capsys):
    """Of the program above, as if XLA had made it of the network."""
    bound, name = gpu("bound"), "anywhere, density 1"
    made, record = [], tmp_path / "gpu" / "bound.json"

    def step(model, batch):
        made.append((model.get_layer("scale_channels").plan.groups, batch))
        return SimpleNamespace(as_text=lambda: PROGRAM), 1.0, 2.0

    monkeypatch.setattr(bound, "training_step", step)
    monkeypatch.setattr(bound, "ROOT", tmp_path)
    monkeypatch.setattr(bound, "RECORD", record)
    command = ["bound.py", "--only", name, "--largest", "1", "--record"]
    monkeypatch.setattr("sys.argv", command)
    bound.main()
    (groups, batch), text = made[0], capsys.readouterr().out
    assert (len(groups), batch) == (6, 24)
    assert f"{name}, 24 images: 8 kernels" in text and "DIFFERS" not in text
    assert "product, gemm fusion" in text or "copy" in text
    counts = json.loads(record.read_text(encoding="utf-8"))["counts"][name]
    assert counts["kernels"] == 8
    wrong = record.read_text(encoding="utf-8").replace('"kernels": 8', '"kernels": 7')
    record.write_text(wrong, encoding="utf-8")
    bound.main()
    assert "DIFFERS" in capsys.readouterr().out


def test_another_text_is_refused(program):
    with pytest.raises(ValueError, match="optimized program of XLA"):
        program.kernels("module @jit_step {}")
