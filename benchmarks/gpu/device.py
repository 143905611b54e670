"""What a device can do at most, in products and in bandwidth, and a share of it."""

import dataclasses

import jax
import jax.numpy as jnp
import measure
from precision import precision

# By JAX's name of the device, from the vendor's data sheets: dense products per second
# in units of 10¹² floating point operations, and bytes per second in units of 10¹².
_HOPPER = {"float32": 67.0, "TF32": 494.0, "bfloat16": 989.0, "float16": 989.0}
_AMPERE = {"float32": 19.5, "TF32": 156.0, "bfloat16": 312.0, "float16": 312.0}
KNOWN = {
    "NVIDIA H200": (_HOPPER, 4.8),
    "NVIDIA H100 80GB HBM3": (_HOPPER, 3.35),
    "NVIDIA A100-SXM4-80GB": (_AMPERE, 2.04),
    "NVIDIA A100-SXM4-40GB": (_AMPERE, 1.56),
}
TERA = 1e12


@dataclasses.dataclass(frozen=True)
class Peak:
    """Of a device, at one precision.

    Attributes:
        operations: Floating point operations of products per second.
        bandwidth: Bytes per second from and to the memory.
        source: "data sheet" or "measured".
    """

    operations: float
    bandwidth: float
    source: str

    def seconds(self, operations: float, moved: float) -> float:
        """The least time for so many operations and bytes: the roofline."""
        return max(operations / self.operations, moved / self.bandwidth)

    def bound(self, operations: float, moved: float) -> str:
        """What this time is needed for."""
        products = operations / self.operations >= moved / self.bandwidth
        return "products" if products else "bandwidth"


def peak(name: str, size: int) -> Peak:
    """From the data sheet, or by a product of matrices and a sum of large arrays.

    Args:
        name: Name of the precision.
        size: Rows and columns of the matrices.
    """
    kind = jax.devices()[0].device_kind
    if kind in KNOWN:
        operations, bandwidth = KNOWN[kind]
        return Peak(operations[name] * TERA, bandwidth * TERA, "data sheet")
    x = jnp.ones((size, size), "float32" if name == "TF32" else name)
    with precision(name):
        product = _fastest(jax.jit(lambda x: x @ x), x)
    y = jnp.ones((16, size, size), "float32")
    moved = _fastest(jax.jit(lambda y: y + 1), y)
    return Peak(2 * size**3 / product, 2 * y.nbytes / moved, "measured")


def memory_limit() -> int | None:
    """Bytes that the device gives to JAX, where it tells."""
    return (jax.devices()[0].memory_stats() or {}).get("bytes_limit")


def _fastest(function, argument, repeats: int = 10) -> float:
    function(argument).block_until_ready()
    return min(
        measure.timed(lambda: function(argument).block_until_ready())
        for _ in range(repeats)
    )
