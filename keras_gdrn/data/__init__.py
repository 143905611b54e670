"""Rescaled image data sets: MATLAB's resizing, canvases, splits and pipelines."""

from ._datasets import DATASETS, SIZE_FACTORS, DatasetInfo
from ._imresize import imresize
from ._load import original_arrays
from ._read_h5 import H5Images, read_h5
from ._rescale import rescale
from ._rescaled import rescaled, rescaled_arrays
from ._rescaled_h5 import h5_report, rescaled_h5
from ._write_h5 import write_h5

__all__ = [
    "DATASETS",
    "SIZE_FACTORS",
    "DatasetInfo",
    "H5Images",
    "h5_report",
    "imresize",
    "original_arrays",
    "read_h5",
    "rescale",
    "rescaled",
    "rescaled_arrays",
    "rescaled_h5",
    "write_h5",
]
