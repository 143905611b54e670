"""The operators of a layer at each scale: constants, or made inside the graph."""

import dataclasses

from keras import ops

from keras_gdrn import kernels
from keras_gdrn.kernels import Samples
from keras_gdrn.layers._fine_scales import can_be_one
from keras_gdrn.layers._jets import Factors
from keras_gdrn.layers._spectral import spectral_operators
from keras_gdrn.layers._windows import Window, Windows

# An axis on which no kernel that slides is wide.
_LONG = 4096


def constant_factors(
    sigma: float,
    entering: Windows,
    leaving: Windows,
    order: int,
    boundary: str,
    epsilon: float,
) -> Factors:
    """At each initial scale, the low-rank factors of each axis."""
    epsilon = max(epsilon, entering.accuracy.epsilon)

    def factors(scale, step, given: Samples, asked: Samples, whole: int):
        pixels = min(int(given.count * given.spacing), whole)
        rule = "symmetric" if is_mirrored(pixels, whole, boundary) else "zero"
        return kernels.axis_factors(
            pixels, scale * sigma, order, rule, epsilon, given, asked, step
        )

    scales = []
    for scale, step, given, asked, whole in _scales(entering, leaving):
        first, *others = [
            factors(scale, step, *axis)
            for axis in zip(given.axes, asked.axes, whole, strict=True)
        ]
        scales.append((first.late or first, *others))
    return tuple(scales)


def factors_in_graph(
    sigma: float,
    entering: Windows,
    leaving: Windows,
    order: int,
    boundary: str,
    epsilon: float,
    dtype: str,
    separable: bool = False,
    log_sigma=None,
) -> Factors:
    """At each initial scale, the operators of each axis, made inside the graph.

    Usable where sizes are known only when the graph runs, and differentiable in σ.

    Args:
        separable: Whether the layer is; else fine scales need no operators (see
            `_fine_scales`).
        log_sigma: Learned logarithm of σ, or `None` if it is `sigma`.
    """
    # Beyond this radius all kernels have vanished, and however far σ is trained, they
    # need not outgrow the image.
    grids = zip(entering.sigma0, entering.steps, strict=True)
    reach = max(kernels.support_radius(scale * sigma, step) for scale, step in grids)
    relative = sigma if log_sigma is None else ops.exp(ops.cast(log_sigma, dtype))
    sigmas = ops.convert_to_tensor(entering.sigma0, dtype) * relative

    def operators(sigmas, step, size, outputs, whole):
        radius = reach if log_sigma is None else reach + 10 * size
        mirrored = is_mirrored(size, whole, boundary)
        # A kernel between the pixels may grow fourfold when σ is trained.
        grid = (step, reach if log_sigma is None else 4 * reach)
        orders = spectral_operators(size, sigmas, order, mirrored, radius, dtype, grid)
        margin = (size - outputs) // 2
        return [operator[:, margin : margin + outputs] for operator in orders]

    scales = _scales(entering, leaving)
    alike = entering.accuracy.extent is None and set(entering.steps) == {1.0}
    factors: dict[int, list] = {}
    zeros = boundary == "zero" and log_sigma is None
    if alike and zeros and can_be_one(len(entering.spatial), separable):
        for number, (scale, *_, whole) in enumerate(scales):
            axis = (_LONG, scale * sigma, order, boundary, epsilon)
            if composed := kernels.differences(*axis):
                factors[number] = [_of_size(composed, size) for size in whole]
    # Whole maps have one size: all other scales at once, as the operations are most of
    # what tracing and exporting a network costs then.
    others = [number for number in range(len(scales)) if number not in factors]
    together = len(others) if alike else 1
    for first in range(0, len(others), together or 1):
        numbers = others[first : first + together]
        _, step, given, asked, whole = scales[numbers[0]]
        some = ops.stack([sigmas[number] for number in numbers])
        axes = [operators(some, step, *axis) for axis in _axes(given, asked, whole)]
        for i, number in enumerate(numbers):
            factors[number] = [
                kernels.AxisFactors(None, [jet[i] for jet in jets], None)
                for jets in axes
            ]
    return [factors[number] for number in range(len(scales))]


def _of_size(composed: kernels.Differences, size) -> kernels.AxisFactors:
    """Along an axis whose length only the graph knows."""
    smoothing = dataclasses.replace(composed.smoothing, pixels=size)
    composed = composed._replace(smoothing=smoothing)
    return kernels.AxisFactors(None, None, None, composed)


def is_mirrored(size, whole, boundary: str):
    """Whether the mirror image lies outside: always around a part of the image.

    Zeros there would be an edge, which a derivative answers strongly.

    Returns:
        A boolean, also as a tensor where sizes are known only when the graph runs.
    """
    return True if boundary == "symmetric" else size < whole


def _scales(
    entering: Windows, leaving: Windows
) -> list[tuple[float, float, Window, Window, tuple]]:
    windows = zip(
        entering.sigma0,
        entering.steps,
        entering.of_scales,
        leaving.of_scales,
        strict=True,
    )
    return [(*of_scale, entering.spatial) for of_scale in windows]


def _axes(given: Window, asked: Window, whole: tuple):
    return zip(given.sizes, asked.sizes, whole, strict=True)
