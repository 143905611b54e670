"""The study of STIR: what it trains on, and a run on little data."""

import json
import re

import numpy as np
import pytest

from keras_gdrn.data import stir_arrays
from keras_gdrn.tuning import parameters


@pytest.mark.slow
@pytest.mark.seen_on_tensorflow("what trains and evaluates has tests of its own")
@pytest.mark.usefixtures("step_by_step")
def test_a_run_is_collected(command, tmp_path):
    options = ["--epochs", "1", "--limit", "1", "--out", tmp_path]
    study = "benchmarks/studies/stir.py"
    done = command(study, "emoji", "3", *options)
    assert done.returncode == 0, done.stderr
    result = json.loads((tmp_path / "emoji-3-seed0.json").read_text())
    assert result["trained sigma0"] == pytest.approx([2, 2.83], abs=0.01)
    assert len(result["tested sigma0"]) == 6
    assert len(result["accuracies"]) == 48
    other = json.dumps({**result, "seed": 1, "accuracies": 48 * [1.0]})
    (tmp_path / "emoji-3-seed1.json").write_text(other)
    done = command(study, "--collect", "--out", tmp_path)
    assert done.returncode == 0, done.stderr
    assert re.search(
        r"\| emoji, 49 to 64 \| gauss_der \| +0 1 \| .* ± .* 69.1 \| +6.9 ", done.stdout
    )
    assert (tmp_path / "emoji.png").stat().st_size > 10_000
    assert not (tmp_path / "mnist.png").exists()


def test_objects_are_resized_to_any_size_anywhere(studies):
    resized = studies("stir_networks").resized
    images, _ = stir_arrays("emoji", "train", (20, 24))
    copies = resized(images, 3, seed=0)
    assert copies.shape == (3 * len(images), 64, 64, 1)
    assert copies.min() >= 0 and copies.max() <= 1
    places = [studies("stir_networks").lit(image) for image in copies]
    sizes = [max(part.stop - part.start for part in place) for place in places]
    assert min(sizes) < 20 and max(sizes) > 60  # a rim may be rounded to black
    starts = np.array([[part.start for part in place] for place in places])
    assert len(np.unique(starts, axis=0)) > len(copies) / 2


@pytest.mark.parametrize("name", ["cnn", "pyramid"])
def test_peers_have_about_as_many_weights_as_the_network(name, studies):
    networks = studies("stir_networks")
    peer = networks.PEERS[name].build(36)
    assert peer.output_shape == (None, 36)
    ours = parameters(networks.GAUSS_DER[1].build(36))
    assert parameters(peer) == pytest.approx(ours, rel=0.1)
