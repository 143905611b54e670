"""Trained networks: in this package, in a folder, and on Hugging Face."""

import dataclasses
import hashlib
import os
import shutil
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import keras

from keras_gdrn._checks import check_choice, did_you_mean, takes_keywords_of
from keras_gdrn.layers import ScaleChannels, ScalePooling, SpatialSelection
from keras_gdrn.layers.scale_pooling import MODES as SCALE_POOLINGS
from keras_gdrn.layers.spatial_selection import MODES as SPATIAL_SELECTIONS
from keras_gdrn.models._architectures import ARCHITECTURES
from keras_gdrn.models._card import FILE, README, Card, read_card, write_card
from keras_gdrn.models._graph import (
    count_parameters,
    image_shape,
    only_layer,
    replace_layers,
)
from keras_gdrn.models._preprocess import Preprocess
from keras_gdrn.models._transfer import (
    with_classes,
    with_dtype,
    with_input_shape,
    with_sigma0,
)

FOLDER = Path(__file__).parent / "trained"
WEIGHTS = "model.weights.h5"  # as Keras calls them
HUB = "hf://"


def list_presets() -> dict[str, Card]:
    """Lists the trained networks that come with the package.

    Returns:
        The card of each network, by the name that `from_preset` takes.

    Example:

    >>> list_presets()["mnist"].accuracy["0.5"]
    0.996
    """
    folders = sorted(path.parent for path in FOLDER.glob(f"*/{FILE}"))
    return {folder.name: read_card(folder) for folder in folders}


@takes_keywords_of()
def from_preset(
    preset: str | os.PathLike,
    load_weights: bool = True,
    classes: int | Sequence[str] | None = None,
    *,
    input_shape: tuple | None = None,
    sigma0: Sequence[float] | None = None,
    spatial_selection: str | None = None,
    scale_pooling: str | None = None,
    scale_dropout: float | None = None,
    density: float | str | None = "unchanged",
    receptive_field: float | str | None = "unchanged",
    dtype: str | keras.DTypePolicy | None = None,
) -> keras.Model:
    """Loads a trained network; `architecture` builds untrained ones.

    Its first layer, `"preprocess"`, takes images with values of 0 to 255 or of 0 to 1.
    The arguments change only what keeps the weights valid.

    Args:
        preset: A key of `list_presets()`, a folder of `save_to_preset`, a `.keras`
            file, or `hf://user/name` on Hugging Face.
        load_weights: `False` for the same network with new weights.
        classes: Number or names of other classes, for which the last layer gets new
            weights, as in `with_classes`; by default the network's own classes.
        input_shape, sigma0: Shape of an image and initial scales, as
            `gauss_der_resnet`.
        spatial_selection, scale_pooling, scale_dropout: As `gauss_der_resnet`.
            `spatial_selection="max"` finds objects at any position.
        density, receptive_field: As `gauss_der_resnet`; by default the network's own.
        dtype: Policy of the scale channels, such as `"mixed_bfloat16"`; by default
            the saved one, whatever the global policy; `"float32"` for the package's
            networks. Scores are in float32.

    Returns:
        Functional model from images to `(batch, class)` scores.

    Raises:
        ValueError: If there is no such preset, its weights file does not match its
            card, or an argument is refused.
        ImportError: For `hf://` without the package `huggingface_hub`.

    Example:

    >>> from_preset("digits", classes=["disc", "square", "cross"]).output_shape
    (None, 3)
    """
    for name, mode, modes in (
        ("spatial_selection", spatial_selection, SPATIAL_SELECTIONS),
        ("scale_pooling", scale_pooling, SCALE_POOLINGS),
    ):
        if mode is not None:
            check_choice(name, mode, modes)
    model: Any = _loaded(preset)
    if not load_weights:
        model = type(model).from_config(model.get_config())
    if dtype is not None:
        model = with_dtype(model, dtype)
    if input_shape is not None:
        model = with_input_shape(model, input_shape)
    as_saved = (density, receptive_field) == ("unchanged", "unchanged")
    if sigma0 is not None or not as_saved:
        scales = only_layer(model, ScaleChannels).sigma0 if sigma0 is None else sigma0
        model = with_sigma0(model, scales, density, receptive_field)
    pooling = {"mode": scale_pooling, "dropout": scale_dropout}
    model = _changed(model, SpatialSelection, {"mode": spatial_selection})
    model = _changed(model, ScalePooling, pooling)
    return model if classes is None else with_classes(model, classes)


def save_to_preset(
    model: keras.Model, preset: str | os.PathLike, card: Card | None = None
) -> None:
    """Saves a network for `from_preset`, to a folder or to Hugging Face.

    Writes the files of Keras, the card and a README. The optimizer is not saved.

    Args:
        model: Functional model, such as those of `from_preset`.
        preset: A folder, created if needed, in which another network is replaced; or
            `hf://user/name`, to which Keras uploads it after `hf auth login`.
        card: Facts about its training; what can be read from the model is added.

    Raises:
        ImportError: For `hf://` without the package `huggingface_hub`.

    Example:

    >>> save_to_preset(model, "shapes", Card(data="drawn shapes", license="cc0-1.0"))
    >>> from_preset("shapes").output_shape
    (None, 3)
    """
    on_hub = str(preset).startswith(HUB)
    image_shape(model)  # or an error that names what it must be
    # Without the optimizer.
    model = keras.Model(model.input, model.output, name=model.name)
    with tempfile.TemporaryDirectory() as temporary:
        folder = Path(temporary)
        model.save(folder, zipped=False)
        card = _completed(card or Card(), model, folder / WEIGHTS)
        write_card(card, folder, str(preset) if on_hub else Path(preset).name)
        if on_hub:
            _upload(model, str(preset), folder)
        else:  # Keras does not save to a folder that has a network
            _replace_files(folder, Path(preset))


def _replace_files(source: Path, target: Path) -> None:
    """Moves the files of a folder into another: on a full disk, none of them."""
    target.mkdir(parents=True, exist_ok=True)
    files = [file.relative_to(source) for file in source.rglob("*") if file.is_file()]
    with tempfile.TemporaryDirectory(dir=target, prefix=".new-") as staging:
        try:
            shutil.copytree(source, staging, dirs_exist_ok=True)
        except shutil.Error as error:  # has all failed files
            first, *_ = error.args[0]
            raise OSError(
                f"The network could not be saved to {target}; its former files are "
                f"unchanged. {first[-1]}"
            ) from error
        for file in files:
            (target / file).parent.mkdir(parents=True, exist_ok=True)
            (Path(staging) / file).replace(target / file)


def _upload(model: keras.Model, preset: str, folder: Path) -> None:
    keras.saving.save_model(model, preset)  # raises without huggingface_hub
    import huggingface_hub  # pyright: ignore[reportMissingImports]

    for name in (FILE, README):  # replaces the README that Keras writes
        huggingface_hub.HfApi().upload_file(
            path_or_fileobj=folder / name,
            path_in_repo=name,
            repo_id=preset.removeprefix(HUB),
        )


def _completed(card: Card, model: keras.Model, weights: Path) -> Card:
    shape = model.input_shape[1:]
    known = [layer for layer in model.layers if isinstance(layer, Preprocess)]
    found = {
        "class_names": known[0].class_names if known else (),
        "images": f"{shape}, with values of 0 to 1" + " or 0 to 255" * bool(known),
        "parameters": count_parameters(model),
    }
    given = {name: getattr(card, name) or value for name, value in found.items()}
    return dataclasses.replace(card, **given, sha256=_checksum(weights))


def _loaded(preset: str | os.PathLike) -> keras.Model:
    names = list(list_presets())
    path = FOLDER / preset if preset in names else Path(preset)
    if str(preset).startswith(HUB):
        return keras.saving.load_model(preset, compile=False)
    if not path.exists():
        hint = ""
        if preset in ARCHITECTURES:
            hint = f" `architecture({preset!r})` builds an untrained one."
        raise ValueError(
            f"`preset` must be one of {names}, a folder of `save_to_preset`, a .keras "
            f"file or hf://user/name.{hint or did_you_mean(preset, names)} "
            f"Received: preset={str(preset)!r}"
        )
    if (path / FILE).exists():
        _check_weights(path)
    return keras.saving.load_model(path, compile=False)


def _check_weights(folder: Path) -> None:
    expected, found = read_card(folder).sha256, _checksum(folder / WEIGHTS)
    if expected and found != expected:
        raise ValueError(
            f"The weights {folder / WEIGHTS} are damaged or do not match their card: "
            "install or download them again. "
            f"Received: the SHA-256 {found}, not {expected}"
        )


def _checksum(file: Path) -> str:
    return hashlib.sha256(file.read_bytes()).hexdigest()


def _changed(model: Any, kind: type, options: dict[str, Any]) -> Any:
    """The model with other options of its layers of this kind."""
    given = {name: value for name, value in options.items() if value is not None}
    if not given:
        return model
    found = []

    def replacement(layer: Any) -> Any:
        if not isinstance(layer, kind):
            return layer
        found.append(layer)
        return type(layer).from_config({**layer.get_config(), **given})

    model = replace_layers(model, replacement)
    if not found:
        raise ValueError(
            f"The network must have a `{kind.__name__}` to be changed. "
            f"Received: network={model.name!r} without one, for {given}"
        )
    return model
