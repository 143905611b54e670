"""The benchmark of the pipelines, on random images."""

import pytest


@pytest.mark.slow
def test_every_pipeline_is_timed(table_of, tmp_path):
    table = table_of(
        "data.py",
        *("--data-dir", tmp_path, "--repeats", 1, "--limit", 64, "--test-limit", 8),
        *("--batches", 1, "--narrower", 48),
    )
    what, data, measured, _ = zip(*table, strict=True)
    assert len(what) >= 9 and "workers" in what[-1]
    assert all("random images" in name for name in data)
    assert all(float(value.split()[0]) > 0 for value in measured)
