"""The benchmarks that print a table, on little data."""

import functools
import json
import re

import numpy as np
import pytest

from keras_gdrn.models import from_preset
from keras_gdrn.models._card import read_card


def percentages(cells):
    return [float(cell.removesuffix(" %")) for cell in cells]


@pytest.mark.slow
def test_grids_are_covariant_and_kernels_on_the_pixels_are_less(table_of):
    little = ("studies/covariance.py", "scores", "--images", 12, "--factor", 1.5)
    errors = []
    for table in (table_of(*little), table_of(*little, "--pixels")):
        scales, _, natural, _, _, _, same, *_ = zip(*table, strict=True)
        assert scales == ("0.5", "1", "2")
        assert min(percentages(same)) > 80
        errors.append(percentages(natural))
    assert max(errors[0]) < 6 and errors[1][0] > 5 * errors[0][0]


@pytest.mark.slow
def test_every_layer_and_size_has_a_row(table_of):
    little = ("--images", 2, "--factor", 1.5)
    table = table_of("studies/covariance.py", "layers", *little)
    layers, *errors = zip(*table, strict=True)
    assert layers == ("stem_conv", *(f"block{k}" for k in range(1, 5)), "head")
    assert np.all(np.diff([*map(percentages, errors)], axis=0) < 0)


@pytest.mark.slow
def test_windows_change_less_the_wider_they_are(table_of):
    table = table_of("studies/covariance.py", "windows", "--images", 4)
    extents, sizes, changes, *_ = zip(*table, strict=True)
    assert extents == ("2", "2.5", "3", "3.5", "5") * 3
    assert sizes[::5] == ("0.5", "1", "2")
    # Of size factor 2 the object reaches the edge, beyond which whole maps mirror.
    changes = np.reshape(percentages(changes), (3, 5))[:2]
    assert np.all(changes[:, 2] > 0) and np.all(3 * changes[:, 2] < changes[:, 0])


@pytest.mark.slow
def test_layers_are_timed(table_of):
    options = ("--widths", 4, "--size", 8, "--sigmas", 1, 3, "--repeats", 1)
    table = table_of("run.py", "layers", *options)
    layers, sigmas, _, *ratios, dense = zip(*table, strict=True)
    assert (layers, sigmas) == (("4→4, 8×8",) * 2, ("1", "3"))
    assert np.all(np.array(ratios, float) > 0)
    assert float(dense[0]) > 0 and dense[1] == "–"  # up to σ = 2


@pytest.mark.slow
def test_a_network_learns_to_look_elsewhere(table_of, tmp_path, monkeypatch):
    """Here one of two scale channels, at one size."""
    two = functools.partial(from_preset, sigma0=(1.0, 1.4))
    monkeypatch.setattr("keras_gdrn.models.from_preset", two)
    monkeypatch.setattr("keras_gdrn.data.SIZE_FACTORS", (1.0,))
    little = ("--epochs", 1, "--limit", 4, "--joint-limit", 2, "--test-limit", 2)
    little += ("--joint-epochs", 2, "--canvas", 36, "--dtype", "mixed_bfloat16")
    table = table_of("studies/anywhere.py", "digits", *little, "--out", tmp_path)
    assert [name for name, *_ in table] == ["preset", "changed", "trained further"]
    for _, *row in table:
        assert len(row) == 1 + 4
        assert row[0] == row[1]  # not moved, at the size of training
    center = table[0]
    assert float(center[-1]) < float(center[-4])  # moved by 12 pixels, and by none
    saved = tmp_path / "digits_anywhere"
    channel = from_preset(saved).get_layer("scale_channels").network
    assert channel.get_layer("spatial_selection").mode == "max"
    assert channel.get_layer("head").compute_dtype == "bfloat16"
    for stage, of_one in {"one_channel": True, "all_channels": False}.items():
        file = tmp_path / "training" / f"{stage}_36" / "settings.json"
        text = file.read_text(encoding="utf-8")
        scales = re.findall(r'"sigma0": \[([^]]*)\]', text)
        assert ("1.0" in map(str.strip, scales)) == of_one
        settings = json.loads(text)
        assert settings["epochs"] == (1 if of_one else 2)
        _, where, images, _ = settings["data"]
        assert where == "factor 1 on 36x36"
        assert f"[{4 if of_one else 2}, " in images
    card = read_card(saved)
    assert card.shift_images == 2 and "--joint-limit 2" in card.command
    assert list(card.shift_accuracy) == ["0", "4", "8", "12"]
