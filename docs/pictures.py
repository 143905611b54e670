"""Draws the pictures of the documentation: `python docs/pictures.py`.

All they show is computed here, by the library, on one of scikit-learn's digits; but for
the curves of CIFAR-10, which are those of the records in `results/`.
"""

import json
from pathlib import Path

import numpy as np
from matplotlib.figure import Figure
from scipy.ndimage import correlate1d
from sklearn.datasets import load_digits

from keras_gdrn import kernels
from keras_gdrn.data import rescale
from keras_gdrn.evaluation import ScaleGeneralization
from keras_gdrn.models import architecture
from keras_gdrn.visualization import plot_basis_kernels, plot_scale_generalization

OUT = Path(__file__).parent / "pictures"
RESULTS = Path(__file__).parents[1] / "results"
CANVAS = 64


def main() -> None:
    OUT.mkdir(exist_ok=True)
    pictures = {
        "basis_kernels": plot_basis_kernels((1.0, 4.0), order=2),
        "cifar10": cifar10(),
        "covariance": covariance(),
        "discretization": discretization(),
        "windows": windows(),
    }
    for name, figure in pictures.items():
        figure.savefig(OUT / f"{name}.png")


def new_figure(height: float) -> Figure:
    return Figure(figsize=(6.4, height), dpi=150, layout="constrained")


def cifar10() -> Figure:
    """The trained network, its single channel, and a plain one."""
    networks = {
        "plain ResNet": ("cifar10_plain/large", "cifar10_plain"),
        "one scale channel": ("cifar10/large", "cifar10_max_pretrained, first_stage"),
        "6 scale channels": ("cifar10/blurred", "cifar10_max_pretrained"),
    }
    curves = {}
    for label, (folder, name) in networks.items():
        text = (RESULTS / folder / "results.json").read_text(encoding="utf-8")
        record = json.loads(text)
        accuracies = np.array(record["accuracies"][name])
        curves[label] = ScaleGeneralization(np.array(record["factors"]), accuracies)
    return plot_scale_generalization(curves)


def covariance() -> Figure:
    """The responses to an image of two sizes, at two scales."""
    sizes = {"an image": digit(3.0), "twice as large": digit(6.0)}
    scales = (1.5, 3.0)
    figure = new_figure(4.4)
    grid = figure.subplots(2, 3, subplot_kw={"xticks": [], "yticks": []})
    for row, (name, image) in zip(grid, sizes.items(), strict=True):
        row[0].imshow(image, cmap="gray")
        row[0].set_title(name, fontsize=10)
        for axes, sigma in zip(row[1:], scales, strict=True):
            response = laplacian(image, sigma)
            limit = np.abs(response).max()
            axes.imshow(response, cmap="bwr", vmin=-limit, vmax=limit)
            axes.set_title(f"σ²∇²L, σ = {sigma:g}: ±{limit:.2f}", fontsize=10)
    for axes in (grid[0, 1], grid[1, 2]):  # the pair that agrees
        for spine in axes.spines.values():
            spine.set(color="tab:green", linewidth=4)
    return figure


def digit(factor: float) -> np.ndarray:
    """A digit, 8 pixels high, magnified by a factor, with values in [0, 1]."""
    image = load_digits().images[0][None, ..., None].astype("float32") / 16
    return rescale(image, factor, (CANVAS, CANVAS), "zero")[0, ..., 0]


def laplacian(image: np.ndarray, sigma: float) -> np.ndarray:
    """`σ² (δ_xx + δ_yy) T * f`, scale-normalized."""
    radius = kernels.truncation_radius(sigma, 1e-9)
    smooth, second = (kernels.gaussian_derivative(sigma, a, radius) for a in (0, 2))
    return sum(
        correlate1d(correlate1d(image, a, 0, mode="constant"), b, 1, mode="constant")
        for a, b in ((second, smooth), (smooth, second))
    )


def discretization() -> Figure:
    """How a derivative answers to waves on pixels, and how it should."""
    figure = new_figure(3.0)
    for order, axes in enumerate(figure.subplots(1, 2), start=1):
        phase = np.linspace(0, 4, 200)  # σω: the same wave for each scale
        axes.plot(phase, phase**order * np.exp(-(phase**2) / 2), "k:", label="exact")
        for sigma in (2, 1, 0.5):
            on_pixels = phase[phase <= np.pi * sigma]
            radius = kernels.truncation_radius(sigma, 1e-9)
            kernel = kernels.gaussian_derivative(sigma, order, radius)
            pixels = np.arange(-radius, radius + 1)
            response = np.exp(1j * np.outer(on_pixels / sigma, pixels)) @ kernel
            axes.plot(on_pixels, np.abs(response), label=f"σ = {sigma:g}")
        axes.set_title(f"{('first', 'second')[order - 1]} derivative", fontsize=10)
        axes.set_ylabel("response to a wave")
    handles, labels = axes.get_legend_handles_labels()
    figure.legend(handles, labels, loc="outside right upper")
    figure.supxlabel("σω, up to the finest wave that pixels hold, ω = π", fontsize=10)
    return figure


def windows() -> Figure:
    """What each scale channel of a network of 18 layers sees of a digit."""
    channels = architecture("rescaled_cifar10").get_layer("scale_channels")
    maps = [call.output for call in channels.plan.calls if call.convolutions]
    figure = new_figure(4.6)
    panels = figure.subplots(2, 3, subplot_kw={"xticks": [], "yticks": []}).flat
    for axes, sigma0 in zip(panels, channels.sigma0, strict=True):
        axes.imshow(digit(4 * sigma0), cmap="gray", vmin=0, vmax=1.6)
        axes.set_title(f"σ₀ = {sigma0:.2f}", fontsize=10)
        first, late = (
            (CANVAS - 1) / 2 + sigma0 * grid.step * np.arange(-half, half + 1)
            for value in (maps[0], maps[-2])
            for grid in channels.plan.grids(value, None)
            for half in grid.halves[:1]
        )
        ends = first[[0, 0, -1, -1, 0]], first[[0, -1, -1, 0, 0]]
        axes.plot(*ends, "C0", lw=2, label="edge of the first map")
        axes.plot(
            *np.meshgrid(late, late), "C1.", ms=2, label="points of the last block"
        )
        axes.set(xlim=(0, CANVAS - 1), ylim=(CANVAS - 1, 0))
    names = dict(zip(*axes.get_legend_handles_labels()[::-1], strict=True))
    figure.legend(names.values(), names, loc="outside lower center", markerscale=6)
    return figure


if __name__ == "__main__":
    main()
