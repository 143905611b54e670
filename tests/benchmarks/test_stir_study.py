"""The study of STIR: what it trains on, and a run on little data."""

import json
import re

import numpy as np
import pytest

from keras_gdrn.data import stir_arrays
from keras_gdrn.tuning import parameters


@pytest.fixture
def networks(studies):
    return studies("stir_networks")


@pytest.mark.slow
@pytest.mark.usefixtures("step_by_step")
def test_a_run_is_collected(command, tmp_path):
    study, out = "benchmarks/studies/stir.py", ("--out", tmp_path)
    done = command(study, "emoji", 3, "--epochs", 1, "--limit", 1, *out)
    assert done.returncode == 0, done.stderr
    result = json.loads((tmp_path / "emoji-3-seed0.json").read_text())
    assert result["trained sigma0"] == pytest.approx([2, 2.83], abs=0.01)
    assert len(result["tested sigma0"]) == 6
    assert len(result["accuracies"]) == 48
    other = json.dumps({**result, "seed": 1, "accuracies": 48 * [1.0]})
    (tmp_path / "emoji-3-seed1.json").write_text(other)
    done = command(study, "--collect", *out)
    assert done.returncode == 0, done.stderr
    assert re.search(
        r"\| emoji, 49 to 64 \| gauss_der \| +0 1 \| .* ± .* 69.1 \| +6.9 ", done.stdout
    )
    assert (tmp_path / "emoji.png").stat().st_size > 10_000
    assert not (tmp_path / "mnist.png").exists()


def test_objects_are_resized_to_any_size_anywhere(networks):
    images, _ = stir_arrays("emoji", "train", (20, 24))
    copies = networks.resized(images, 3, seed=0)
    assert copies.shape == (3 * len(images), 64, 64, 1)
    assert copies.min() >= 0 and copies.max() <= 1
    ends = np.array([[(x.start, x.stop) for x in networks.lit(i)] for i in copies])
    sizes = np.diff(ends).max(axis=(1, 2))
    assert sizes.min() < 20 and sizes.max() > 60  # a rim may be rounded to black
    assert len(np.unique(ends[..., 0], axis=0)) > len(copies) / 2


@pytest.mark.parametrize("name", ["cnn", "pyramid"])
def test_peers_have_about_as_many_weights_as_the_network(name, networks):
    peer = networks.PEERS[name].build(36)
    assert peer.output_shape == (None, 36)
    ours = parameters(networks.GAUSS_DER[1].build(36))
    assert parameters(peer) == pytest.approx(ours, rel=0.1)
