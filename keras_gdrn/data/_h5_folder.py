"""Finding a split of a data set in a folder of HDF5 files."""

import os
from pathlib import Path

from keras_gdrn._checks import check_choice

from ._h5_file import H5Split, describe_h5, stated_factor


def h5_report(folder: str | os.PathLike) -> str:
    """What a folder of HDF5 files of rescaled images holds, for `print`.

    The images are not read.

    Args:
        folder: where files such as those of `write_h5` are.

    Returns:
        For each file its name and size factor, a line for the images and the labels
        of each split, and one for each departure from what `read_h5` expects.

    Raises:
        FileNotFoundError: if there is no such folder, or no such file in it.
        OSError, ValueError: as `read_h5`, but for the values of the images.

    Example:

    >>> path = write_h5("files", "digits", ("test",), 2**-0.25)
    >>> print(h5_report("files"))
    digits_te797_outsize40-40_scte0p841.h5, size factor 0.8408964152537145
      x_test: 797 images 40x40x1
      y_test: classes 0 to 9
    """
    return "\n".join(str(describe_h5(path)) for path in _files(folder))


def find_splits(folder: str | os.PathLike, split: str, factor: float) -> list[H5Split]:
    """The splits that follow each other in `split`, at one size factor.

    As for `rescaled`, "train+validation" is "train" where no file has a validation
    split. All have images of the same shape, or there is a `ValueError`.
    """
    known = ["train", "validation", "train+validation", "test"]
    check_choice("split", split, known)
    first, *others = split.split("+")
    parts = _find(folder, first, factor)
    if not parts:
        raise FileNotFoundError(
            f"No file in {folder} has the split {first!r} at size factor {factor}. "
            f"Found:\n{h5_report(folder)}"
        )
    parts += [part for other in others for part in _find(folder, other, factor)]
    shapes = [part.shape[1:] for part in parts]
    if len(set(shapes)) > 1:
        names = [part.path.name for part in parts]
        raise ValueError(
            f"{split} must have images of one shape. Found: {shapes} in {names}"
        )
    return parts


def _find(folder: str | os.PathLike, split: str, factor: float) -> list[H5Split]:
    """The split of the only file that has it at this size factor, if there is one."""
    # Names state three decimals. Only files whose name fits are opened.
    files = [path for path in _files(folder) if _states(path, split, f"{factor:.3f}")]
    descriptions = [describe_h5(path) for path in files]
    found = [file.splits[split] for file in descriptions if split in file.splits]
    if len(found) > 1:
        raise ValueError(
            f"One file in {folder} may have the split {split!r} at size factor "
            f"{factor}. Found: {[part.path.name for part in found]}"
        )
    return found


def _states(path: Path, split: str, factor: str) -> bool:
    """Whether the name of a file states this size factor, to three decimals.

    A name that states none for training images means 1.
    """
    if split == "test":
        stated = stated_factor(path.name, "te")
    else:
        stated = stated_factor(path.name, "tr") or 1.0
    return stated is not None and f"{stated:.3f}" == factor


def _files(folder: str | os.PathLike) -> list[Path]:
    files = sorted(Path(folder).glob("*.h5"))
    if not files:
        raise FileNotFoundError(
            f"`folder` must have HDF5 files, *.h5. Received: folder={str(folder)!r}"
        )
    return files
