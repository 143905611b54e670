"""The benchmarks that print a table, on little data."""

import functools
import json
import re

import numpy as np
import pytest

from keras_gdrn.models import from_preset
from keras_gdrn.models._card import read_card


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
