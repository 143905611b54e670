"""Every number in the README's tables is that of a record, or follows from one."""

import json
import re

import numpy as np
import pytest

from keras_gdrn.models import list_presets
from tests._commands import ROOT
from tests._pages import page

RESULTS = ROOT / "results"


def record(path):
    return json.loads((RESULTS / path).read_text(encoding="utf-8"))


def row(of, text) -> list[float]:
    """The first number of each cell, in the first row that begins so."""
    line, *_ = re.findall(rf"^\| *{re.escape(of)}.*$", text, re.M)
    cells = line.strip("| ").split(" | ")[1:]
    numbers = [re.findall(r"\d+\.\d+", cell) for cell in cells]
    return [float(found[0]) for found in numbers if found]


def stir(data):
    runs = [record(f"stir/{data}-1-seed{seed}.json") for seed in range(3)]
    return 100 * np.mean([run["accuracies"] for run in runs])


def plain_resnet(factor):
    run = record("cifar10_plain/large/results.json")
    (accuracies,) = run["accuracies"].values()
    return 100 * accuracies[run["factors"].index(factor)]


@pytest.mark.parametrize("network", ["one scale channel", "six scale channels"])
def test_first_example(network):
    shares = [f"{100 * run[network]:.1f}" for run in record("readme.json")]
    assert f"{' and '.join(shares)} %" in page("README")


@pytest.mark.parametrize("data", ["emoji", "mnist"])
def test_stir(data):
    name = {"emoji": "STIR emoji", "mnist": "STIR MNIST"}[data]
    ours, published = row(name, page("README"))
    assert ours == round(stir(data), 1)
    columns = row(f"{data}, 17 to 32", page("docs/results/stir"))
    assert columns[0] == ours
    assert columns[2] == published


def test_digits():
    table = page("docs/results/peers").split("`cluttered`:")[0]
    ours, plain = row("digits, trained at one size", page("README"))
    assert ours == row("six scale channels (`gauss_der`)", table)[-2]
    assert plain == row("plain CNN |", table)[-2]
    resized = row("plain CNN, resized copies", table)[-2]
    assert f"(digits {resized} %, here {ours})" in page("README")


@pytest.mark.parametrize(
    ("factor", "objects"), [(0.5, "half"), (1.0, "the training"), (2.0, "twice")]
)
def test_cifar10(factor, objects):
    ours, plain = row(f"CIFAR-10, objects of {objects}", page("README"))
    assert ours == round(100 * list_presets()["cifar10"].accuracy[f"{factor:g}"], 1)
    assert plain == round(plain_resnet(factor), 1)


def speed(name) -> list[float]:
    """Ratios to six passes of the 3×3 ResNet: of both densities and of one pass."""
    ratios = record(f"speed/{name}.json")["ratios"]
    return [ratios[of] for of in ("GaussDerResNet", "density 0.7", "one pass of 3×3")]


@pytest.mark.parametrize(
    ("step", "name"),
    [
        ("training, `rescaled_cifar10`", "training-rescaled_cifar10"),
        ("training, `rescaled_fashion_mnist`", "training-rescaled_fashion_mnist"),
        ("inference, `rescaled_cifar10`", "inference-rescaled_cifar10"),
        ("inference, `rescaled_fashion_mnist`", "inference-rescaled_fashion_mnist"),
        ("training, objects at any position", "training-anywhere"),
    ],
)
def test_table_of_times(step, name):
    stated = row(step, page("docs/how_a_layer_is_evaluated"))
    found = speed(name) + speed(f"{name}-onednn")
    assert stated == [round(ratio, 3) for ratio in found]


@pytest.mark.parametrize(
    ("objects", "preset"),
    [
        ("centered objects", "rescaled_cifar10"),
        ("objects at any position", "anywhere"),
    ],
)
def test_speed(objects, preset):
    """Ratios to one pass and to six: measured on a CPU, counted for a GPU."""
    *ours, one_pass = speed(f"training-{preset}")
    bounds = {n: of["ms"] for n, of in record("gpu/bound.json")["counts"].items()}
    counted = [bounds[f"{preset}, density {of}"] for of in ("1", "0.7")]
    expected = [x / one_pass for x in ours] + ours
    for passes in ("one pass", "six passes"):
        plain = bounds[f"{preset}, 3×3 ResNet, {passes}"]
        expected += [x / plain for x in counted]
    (line,) = re.findall(rf"^\| {objects}.*$", page("README"), re.M)
    stated = re.findall(r"\d+\.\d+", line)
    for text, ratio in zip(stated, expected, strict=True):
        digits = len(text.partition(".")[2])
        assert float(text) == pytest.approx(ratio, abs=0.51 * 10**-digits)


def test_counts_of_a_step_on_a_gpu():
    for name, counts in record("gpu/bound.json")["counts"].items():
        (line,) = re.findall(
            rf"^\| {name}.*$", page("docs/how_a_layer_is_evaluated"), re.M
        )
        kernels, moved, bound = line.strip("| ").split(" | ")[1:]
        expected = counts["kernels"], counts["GB"], counts["ms"]
        assert (int(kernels), float(moved), float(bound)) == expected


@pytest.mark.parametrize(
    ("task", "label"),
    [("centered", "digits, centered"), ("cluttered", "digits at any")],
)
def test_times_of_an_image_in_the_guide(task, label):
    """In the row below that of the accuracies; also on the page of peers."""
    found = record(f"speed/peers-{task}.json")["an image (ms)"]
    columns = "gauss_der", "cnn_resized", "foveated", "cnn"
    text = page("docs/guide")
    (times,) = re.findall(rf"^\| {label}.*\n\| – time of an image (.*)$", text, re.M)
    stated = [float(number) for number in re.findall(r"([\d.]+) ms", times)]
    assert stated == pytest.approx([found[name] for name in columns], rel=0.2)
