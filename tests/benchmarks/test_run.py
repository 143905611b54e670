"""The benchmark of the layers, on one that is small."""

import pytest


@pytest.mark.slow
def test_layers_are_timed(table_of):
    options = ("--widths", 4, "--size", 8, "--sigmas", 1, "--repeats", 1)
    ((layer, sigma, _, *ratios),) = table_of("run.py", "layers", *options)
    assert (layer, sigma) == ("4→4, 8×8", "1")
    assert all(float(ratio) > 0 for ratio in ratios)


@pytest.mark.parametrize(
    "options", [("one",), ("one", "--name", "nope"), ("network", "--names", "nope")]
)
def test_networks_of_other_names_are_refused(command, options):
    done = command("benchmarks/run.py", *options)
    assert done.returncode == 2
    assert "--name" in done.stderr and "'GaussDerResNet'" in done.stderr
