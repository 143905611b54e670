"""The kernels of a program that XLA has compiled for a GPU.

The text of an optimized program lists computations, and in each of them instructions:

    %name = f32[32,64]{1,0} fusion(%a, %b), kind=kLoop, calls=%inner, metadata={…}

On a GPU every instruction of the main computation is one kernel: a fusion, a call of a
library, a copy. A loop runs those of its body several times.
"""

import collections
import dataclasses
import math
import re
from collections.abc import Iterator

# Seconds to launch a kernel and bytes per second, both measured on an H100; floating
# point operations per second of its tensor cores, with float32 as TF32.
LAUNCH, BANDWIDTH = 2e-6, 3.0e12
PEAK = {"bf16": 700e12, "f16": 700e12}
PEAK_OF_OTHERS = 350e12

_BYTES = {"pred": 1, "bf16": 2, "f16": 2, "f32": 4, "f64": 8}
_BYTES |= {f"{sign}{8 * size}": size for sign in "su" for size in (1, 2, 4, 8)}
_NO_KERNEL = {"parameter", "constant", "bitcast", "tuple", "get-tuple-element"}
_NO_KERNEL |= {"after-all", "copy-done"}

_HEAD = re.compile(r"^(ENTRY )?%?([\w.\-]+) \(.*\{\s*$")
_SHAPE = r"\((?:[^()]|\([^()]*\))*\)|\w+\[[\d,]*\](?:\{[^}]*\})?"
_LINE = re.compile(rf"^\s+(?:ROOT )?%?([\w.\-]+) = ({_SHAPE})\s+([\w\-]+)\((.*)$")
_ARRAY = re.compile(r"\b(pred|bf16|[sfu]\d+)\[([\d,]*)\]")
_OPERAND = re.compile(r"%([\w.\-]+)")


@dataclasses.dataclass(frozen=True)
class Kernel:
    """One kernel of a program.

    Attributes:
        kind: What XLA made of it, such as `"loop fusion"`.
        source: The operation of JAX it belongs to, with its pass.
        shape: Shape of its result.
        bytes: Bytes of its operands and its result.
        operations: Operations of its products and convolutions.
        dtype: Type of their operands.
        times: How often it runs.
    """

    kind: str
    source: str
    shape: str
    bytes: int
    operations: int
    dtype: str
    times: int

    @property
    def seconds(self) -> float:
        """The least time on an H100, if nothing stays in its cache."""
        peak = PEAK.get(self.dtype, PEAK_OF_OTHERS)
        once = max(LAUNCH, self.bytes / BANDWIDTH, self.operations / peak)
        return self.times * once


@dataclasses.dataclass(frozen=True)
class _Instruction:
    name: str
    shape: str
    code: str
    rest: str  # its operands and attributes

    @property
    def operands(self) -> list[str]:
        return _OPERAND.findall(self.rest.split("), ")[0])

    def attribute(self, pattern: str, default: str = "") -> str:
        found = re.search(pattern, self.rest)
        return found.group(1) if found else default

    @property
    def calls(self) -> list[str]:
        return re.findall(r"(?:calls|to_apply)=\{?%?([\w.\-]+)", self.rest)


def kernels(text: str) -> list[Kernel]:
    """The kernels of an optimized program.

    Args:
        text: `jax.jit(…).lower(…).compile().as_text()`.

    Raises:
        ValueError: If it has no main computation.
    """
    parts, main = _computations(text)
    if main is None:
        raise ValueError(
            "`text` must be an optimized program of XLA, with an ENTRY. "
            f"Received: {text[:60]!r}"
        )
    return list(_kernels(parts, main, 1))


def _computations(text: str) -> tuple[dict[str, list[_Instruction]], str | None]:
    parts, main, name = {}, None, None
    for line in text.splitlines():
        if head := _HEAD.match(line):
            name = head.group(2)
            parts[name], main = [], name if head.group(1) else main
        elif line.startswith("}"):
            name = None
        elif name and (found := _LINE.match(line)):
            parts[name].append(_Instruction(*found.groups()))
    return parts, main


def _kernels(parts: dict, name: str, times: int) -> Iterator[Kernel]:
    shapes = {one.name: one.shape for one in parts[name]}
    for one in parts[name]:
        if one.code == "while":
            trips = one.attribute(r'known_trip_count"?:\{"?n"?:"?(\d+)', "1")
            body = one.attribute(r"body=%?([\w.\-]+)")
            yield from _kernels(parts, body, times * int(trips))
        elif one.code in ("call", "conditional"):
            for called in one.calls:
                yield from _kernels(parts, called, times)
        elif one.code not in _NO_KERNEL:
            yield _kernel(parts, one, shapes, times)


def _kernel(parts: dict, one: _Instruction, shapes: dict, times: int) -> Kernel:
    kind, operations, dtype = one.code, 0, ""
    if kind == "fusion":
        operations, dtype = _dots(parts, one.calls[0])
        kind = re.sub(r"[.\d]+$", "", one.name).replace("_", " ")
        kind = f"product, {kind}" if operations else kind
    elif kind == "custom-call":
        kind = one.attribute(r'custom_call_target="([^"]+)"')
        if "conv" in kind:
            operations, dtype = _convolution(one, shapes)
        elif "gemm" in kind or "matmul" in kind:
            axes = one.attribute(r'"lhs_contracting_dimensions":\[([^\]]*)\]')
            operations, dtype = _product(one, shapes, axes.replace('"', ""))
    path = one.attribute(r'op_name="([^"]*)"', "?")
    direction = "backward" if "transpose(" in path else "forward"
    moved = sum(_size(shapes.get(operand, "")) for operand in one.operands)
    return Kernel(
        kind,
        f"{direction} {path.split('/')[-1]}",
        one.shape,
        moved + _size(one.shape),
        operations,
        dtype,
        times,
    )


def _arrays(shape: str) -> list[tuple[str, list[int]]]:
    found = _ARRAY.findall(shape)
    return [(dtype, [int(n) for n in sizes.split(",") if n]) for dtype, sizes in found]


def _size(shape: str) -> int:
    return sum(_BYTES[dtype] * math.prod(sizes) for dtype, sizes in _arrays(shape))


def _dots(parts: dict, name: str) -> tuple[int, str]:
    """Operations of the matrix products in a fusion, and their type."""
    total, dtype = 0, ""
    shapes = {one.name: one.shape for one in parts.get(name, [])}
    for one in parts.get(name, []):
        if one.code == "dot":
            axes = one.attribute(r"lhs_contracting_dims=\{([\d,]*)\}")
            own, dtype = _product(one, shapes, axes)
            total += own
        for called in one.calls:
            inner, of_inner = _dots(parts, called)
            total, dtype = total + inner, of_inner or dtype
    return total, dtype


def _product(one: _Instruction, shapes: dict, axes: str) -> tuple[int, str]:
    """Operations of a matrix product over these axes of its left, and their type."""
    dtype, sizes = _arrays(shapes[one.operands[0]])[0]
    depth = math.prod(sizes[int(axis)] for axis in axes.split(",") if axis)
    return 2 * math.prod(_arrays(one.shape)[0][1]) * depth, dtype


def _convolution(one: _Instruction, shapes: dict) -> tuple[int, str]:
    """Operations of a library's convolution, and their type."""
    taps = one.attribute(r"window=\{size=([\dx]+)")
    inputs = one.attribute(r"dim_labels=(\w+)_\w+->\w+")
    if not taps or not inputs:
        return 0, ""
    dtype, sizes = _arrays(shapes[one.operands[0]])[0]
    # The gradient of a kernel is of the kernel's shape, from inputs and gradients.
    of_kernel = one.attribute(r'custom_call_target="([^"]+)"').endswith("Filter")
    outputs = _arrays(shapes[one.operands[1]] if of_kernel else one.shape)[0][1]
    depth = sizes[inputs.index("f")]
    taps = math.prod(map(int, taps.split("x")))
    return 2 * math.prod(outputs) * depth * taps, dtype


def by(found: list[Kernel], attribute: str) -> list[tuple[str, list[Kernel]]]:
    """Kernels grouped by an attribute, the longest group first."""
    groups = collections.defaultdict(list)
    for kernel in found:
        groups[getattr(kernel, attribute)].append(kernel)
    return sorted(groups.items(), key=lambda group: -seconds(group[1]))


def seconds(found: list[Kernel]) -> float:
    return sum(kernel.seconds for kernel in found)
