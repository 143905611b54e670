"""The code and the computed numbers of the front page and of the guide."""

import re
from pathlib import Path

import numpy as np
import pytest

from keras_gdrn.models import ARCHITECTURES, architecture
from keras_gdrn.models._architectures import OF_THE_PAPER
from keras_gdrn.tuning import multiply_adds

DOCS = Path(__file__).resolve().parents[1] / "docs"


def page(name: str) -> str:
    return (DOCS / f"{name}.md").read_text(encoding="utf-8")


def code(name: str) -> list[str]:
    """Its Python blocks, also those within a list."""
    blocks = re.findall(r"^( *)```python\n(.*?)```", page(name), re.DOTALL | re.M)
    return [re.sub(rf"^{indent}", "", text, flags=re.M) for indent, text in blocks]


@pytest.mark.usefixtures("step_by_step")
def test_the_front_page():
    (text,) = code("index")
    random = np.random.default_rng(0)
    names = {
        "images": random.random((4, 40, 40, 1), dtype="float32"),
        "labels": np.arange(4),
        "larger_or_smaller_images": random.random((2, 40, 40, 1), dtype="float32"),
    }
    exec(text.replace("epochs=8", "epochs=1"), names)
    assert names["scores"].shape == (2, 10)


def test_the_table_of_reaches():
    names = {}
    exec(code("guide")[0], names)
    row = r"\| .*? \| (\d+) \| ([\d.]+), (\d+) \| ([\d.]+) \| ([\d.]+) \|"
    found = re.findall(row, page("guide"))
    assert len(found) == 5
    for side, ratio, blocks, reach, share in found:
        expected = names["reach"](float(ratio), int(blocks))
        if (side, ratio) == ("96", "1.5"):
            expected /= 2  # at σ₀ = 1/2
        assert float(reach) == pytest.approx(expected, abs=0.06)
        assert float(share) == pytest.approx(expected / int(side), abs=0.006)


IN_THE_TABLE = [n for n in OF_THE_PAPER if not re.search("separable|without", n)]


@pytest.mark.parametrize("name", IN_THE_TABLE)
def test_the_table_has_the_presets(name):
    preset = ARCHITECTURES[name]
    (row,) = re.findall(rf"^\| `{name}`.*$", page("guide").split("## From")[0], re.M)
    assert f"| {preset.ratio:g}, {len(preset.widths) - 1} |" in row


@pytest.mark.parametrize("name", ["rescaled_fashion_mnist", "stl10"])
def test_the_operations_of_a_training_step(name):
    bounds = page("guide").split("**On a GPU**")[1]
    row = rf"\| `{name}` \| ([\d.]+)·10⁹ \| ([\d.]+) ms \| ([\d.]+) ms \|"
    ((operations, *milliseconds),) = re.findall(row, bounds)
    expected = 6 * multiply_adds(architecture(name))
    assert float(operations) == pytest.approx(expected / 1e9, abs=0.051)
    for found, peak in zip(milliseconds, (8.1e12, 156e12), strict=True):
        assert float(found) == pytest.approx(1e3 * expected / peak, rel=0.03)


def test_the_networks_of_the_page():
    """Its other blocks, one after the other."""
    names = {}
    for block in code("guide")[1:]:
        exec(block, names)
        if "sigma0" in names:
            assert names["model"].input_shape == (None, 224, 224, 3)
            found = names["model"].get_layer("scale_channels").sigma0
            assert max(found) == pytest.approx(max(names["sigma0"])) and max(found) >= 7
    sizes = {name: level.shape[1:] for name, level in names["levels"].items()}
    assert sizes == {f"P{k}": (128 >> k, 128 >> k, 64) for k in range(4)}
