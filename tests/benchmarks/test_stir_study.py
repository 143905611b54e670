"""The study of STIR: what it trains on, and a run on little data."""

import json
import re

import pytest


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
        r"\| emoji, 49 to 64 \| +0 1 \| .* ± .* 69.1 \| +6.9 ", done.stdout
    )
    assert (tmp_path / "emoji.png").stat().st_size > 10_000
    assert not (tmp_path / "mnist.png").exists()
