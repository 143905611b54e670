"""The card of a trained network, for people and for programs."""

import dataclasses
import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from keras_gdrn._checks import plain
from keras_gdrn.commands import write_text

FILE, README = "card.json", "README.md"


@dataclasses.dataclass(frozen=True)
class Card:
    """The card of a trained network.

    Attributes:
        data: What it was trained and tested on.
        license: Identifier of the license of the weights, such as `"apache-2.0"`.
        command: Command that trained it, with the random seed.
        accuracy: Test accuracy, from 0 to 1, by size factor; factor 1 is the training
            size.
        test_images: Number of test images at each size.
        object_sizes: Smallest and largest side of the test objects, in pixels.
        shift_accuracy: Test accuracy at the training size, by the number of pixels that
            the image was shifted along both axes.
        shift_images: Number of test images at each shift.
        limits: What the network is not good for.
        date, environment: When it was trained, on which processor, with which versions.
        test_date: When the accuracies were measured.
        class_names, images, parameters, sha256: Names of the classes, images in
            words, number of trained parameters and checksum of the weights file.
            `save_to_preset` fills these in.
    """

    data: str = ""
    license: str = ""
    command: str = ""
    accuracy: Mapping[str, float] = dataclasses.field(default_factory=dict)
    test_images: int | None = None
    object_sizes: tuple[float, float] | None = None
    shift_accuracy: Mapping[str, float] = dataclasses.field(default_factory=dict)
    shift_images: int | None = None
    limits: str = ""
    date: str = ""
    environment: Mapping[str, Any] = dataclasses.field(default_factory=dict)
    test_date: str = ""
    class_names: tuple[str, ...] = ()
    images: str = ""
    parameters: int | None = None
    sha256: str = ""

    def markdown(self, name: str) -> str:
        """The model card, as the README of a Hugging Face repository.

        Args:
            name: Name by which `from_preset` loads the network.
        """
        terms = f"license: {self.license}\n" if self.license else ""
        facts = {
            "Images": self.images,
            "Classes": ", ".join(self.class_names),
            "Data": self.data,
            "Trained by": f"`{self.command}`" if self.command else "",
            "Date of the test": self.test_date,
            "Parameters": self.parameters,
            "Limits": self.limits,
        }
        lines = [f"- {what}: {fact}" for what, fact in facts.items() if fact]
        return (
            f"---\nlibrary_name: keras\n{terms}tags:\n- image-classification\n"
            f"- keras_gdrn\n---\n\n# {name}\n\nA scale-invariant Gaussian derivative "
            "residual network (arXiv 2603.02843) for "
            "[keras_gdrn](https://github.com/keras-gdrn/keras_gdrn):\n\n```python\n"
            "from keras_gdrn.models import classify, from_preset\n\n"
            f'model = from_preset("{name}")\nclassify(model, ["photo.jpg"])\n```\n\n'
            + "\n".join(lines)
            + _table("Size of the object", self.accuracy, self.test_images)
            + _table("Shift in pixels", self.shift_accuracy, self.shift_images)
            + "\n"
        )


def _table(what: str, accuracies: Mapping[str, float], images: int | None) -> str:
    if not accuracies:
        return ""
    header = [what, *accuracies]
    numbers = [f"{100 * accuracy:.1f}" for accuracy in accuracies.values()]
    row = [f"accuracy (%) of {images} images" if images else "accuracy (%)", *numbers]
    rows = [header, ["---"] * len(header), row]
    return "\n\n" + "\n".join(f"| {' | '.join(cells)} |" for cells in rows)


def read_card(folder: Path) -> Card:
    """The card in a folder of `save_to_preset`."""
    card = json.loads((folder / FILE).read_text(encoding="utf-8"))
    for name in ("class_names", "object_sizes"):
        card[name] = card[name] and tuple(card[name])
    return Card(**card)


def write_card(card: Card, folder: Path, name: str) -> None:
    """Writes the card as JSON for programs, and as the folder's README for people."""
    known = dataclasses.asdict(card)
    text = json.dumps(known, indent=2, ensure_ascii=False, default=plain)
    write_text(folder / FILE, text + "\n")
    write_text(folder / README, card.markdown(name))
