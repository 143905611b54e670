"""Activation maps and learned filters as arrays, and figures as in the paper.

`activation_maps`, `basis_kernels` and `effective_filters` are pure functions that
return arrays. The functions `plot_…` only draw such values, or those of `evaluation`;
they need matplotlib (the extra `viz`). Each returns a `matplotlib.figure.Figure`, to be
shown by a notebook or saved by its `savefig`; pyplot and its global state are not used.
`markdown_table` and `size_label` format numbers.
"""

from keras_gdrn.visualization._activation_maps import activation_maps
from keras_gdrn.visualization._figures import size_label
from keras_gdrn.visualization._filters import basis_kernels, effective_filters
from keras_gdrn.visualization._markdown_table import markdown_table
from keras_gdrn.visualization._plot_evaluation import (
    plot_scale_generalization,
    plot_scale_selection_histogram,
)
from keras_gdrn.visualization._plot_images import (
    plot_activation_maps,
    plot_image_grid,
    plot_sizes,
)
from keras_gdrn.visualization._plot_kernels import (
    plot_basis_kernels,
    plot_effective_filters,
)

__all__ = [
    "activation_maps",
    "basis_kernels",
    "effective_filters",
    "markdown_table",
    "plot_activation_maps",
    "plot_basis_kernels",
    "plot_effective_filters",
    "plot_image_grid",
    "plot_scale_generalization",
    "plot_scale_selection_histogram",
    "plot_sizes",
    "size_label",
]
