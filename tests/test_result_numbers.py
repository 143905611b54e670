"""Every row of accuracies on the pages is that of a record, or is in a list here.

The lists name the rows without a record, so that another one fails.
"""

import json
import re
from collections.abc import Iterator

import numpy as np
import pytest

from keras_gdrn.data import SIZE_FACTORS
from keras_gdrn.models import list_presets
from keras_gdrn.visualization import size_label
from tests._commands import ROOT, cells, modules_of
from tests._pages import page

RESULTS = ROOT / "results"
SIZES = [size_label(factor) for factor in SIZE_FACTORS]
# Of single runs that were not kept: the page names their command.
OF_COMMANDS = {
    "mnist": [
        "96.34",  # published
    ],
    "peers": [
        # among clutter
        "six scale channels (`gauss_der`)",
        "image pyramid, 7 sizes (`foveated`)",
        "plain CNN, resized copies",
        "plain CNN",
        # CIFAR-10, of all images and of fewer
        *["plain ResNet, resized copies"] * 2,
        "image pyramid, trained further",
        "image pyramid, not trained further",
        "plain ResNet",
    ],
}


def recorded() -> Iterator[dict[str, float]]:
    """Percent at each size, mean and worst: of runs, means over seeds, and cards.

    The worst size of several runs is the mean of each run's worst.
    """
    series: dict[tuple[str, str], list] = {}
    for file in sorted(RESULTS.rglob("results.json")):
        record = json.loads(file.read_text(encoding="utf-8"))
        if np.allclose(record["factors"], SIZE_FACTORS):
            name = re.sub(r"[-/]\d+$", "", str(file.parent))
            for network, accuracies in record["accuracies"].items():
                series.setdefault((name, network), []).append(accuracies)
    for file in sorted((RESULTS / "peers").glob("*.json")):
        for run in json.loads(file.read_text(encoding="utf-8")):
            of_network = series.setdefault((str(file), run["network"]), [])
            of_network.append(run["accuracies"])
    cards = [list(card.accuracy.values()) for card in list_presets().values()]
    series |= {("card", str(n)): [own] for n, own in enumerate(cards) if len(own) == 9}
    for runs in series.values():
        for group in (*([run] for run in runs), runs):
            percent = 100 * np.array(group)
            found = dict(zip(SIZES, percent.mean(axis=0), strict=True))
            yield found | {"mean": percent.mean(), "worst": percent.min(1).mean()}


def tables(name: str) -> Iterator[list[list[str]]]:
    for text in re.findall(r"(?:^\|.*\n)+", page(name), re.M):
        header, _, *rows = cells(text)
        yield [header, *rows]


def rows(name: str) -> Iterator[tuple[str, dict[str, str]]]:
    """Label and accuracies, as they stand, of the rows of tables with sizes."""
    for header, *lines in tables(name):
        if {"1/2", "1", "2"} <= {*header}:
            label = ""
            for line in lines:
                label = line[0].strip("*") or label  # of the row above
                own = dict(zip(header, line, strict=True))
                yield label, {k: own[k] for k in own if k in SIZES or k == "mean"}


def agrees(stated: str, value: float) -> bool:
    """Whether a number that begins a cell is this one, rounded."""
    number = re.findall(r"[\d.]+", stated)[0]
    step = 10.0 ** -len(number.partition(".")[2])
    return abs(float(number) - value) < 0.5 * step + 1e-6


@pytest.fixture(scope="module")
def records() -> list[dict[str, float]]:
    return list(recorded())


@pytest.mark.parametrize("name", ["index", "mnist", "cifar10", "peers", "settings"])
def test_rows_are_those_of_records(name, records):
    found = list(rows(f"docs/results/{name}"))
    assert len(found) > 3
    others = [
        label
        for label, stated in found
        if not any(all(agrees(stated[k], of[k]) for k in stated) for of in records)
    ]
    assert others == OF_COMMANDS.get(name, [])


@pytest.fixture(scope="module")
def stir() -> list[dict]:
    files = sorted((RESULTS / "stir").glob("*.json"))
    return [json.loads(file.read_text(encoding="utf-8")) for file in files]


def test_rows_of_stir_are_those_of_its_report(stir):
    """Also the worst size: the mean over runs of each run's worst."""
    with modules_of(ROOT / "benchmarks" / "studies") as module:
        header, _, *lines = cells(module("stir_report").table(stir))
    report = [dict(zip(header, line, strict=True)) for line in lines]
    known = {(row["trained at"], row["network"]): row for row in report}
    count = 0
    for columns, *lines in tables("docs/results/stir"):
        for line in lines if columns[0] == "trained at" else []:
            stated = dict(zip(columns, line, strict=True))
            network = stated.pop("network", "gauss_der").strip("`")
            row = known[stated["trained at"], network]
            assert stated == {column: row[column] for column in stated}
            count += 1
    assert count == 8 + 10


def guide(label: str) -> list[tuple[str, str]]:
    """Mean and worst size, as they stand, in each cell of a row of the guide."""
    (line,) = re.findall(rf"^\| {label} .*$", page("docs/guide"), re.M)
    pattern = r"\s*([\d.]+)(?: ± [\d.]+)?(?: \(([\d.]+)\))?"
    return [
        found.groups() if (found := re.match(pattern, cell)) else ("", "")
        for cell in line.strip("|").split("|")[1:]
    ]


@pytest.mark.parametrize(
    ("scenario", "label"),
    [
        (1, "emoji, trained at 17 to 32 pixels"),
        (2, "emoji, 33 to 48"),
        (3, "emoji, 49"),
    ],
)
def test_emoji_in_the_guide(scenario, label, stir):
    """Ours, resized copies, the pyramid and the plain network."""
    networks = ("gauss_der", "cnn_resized", "pyramid", "cnn")
    for (mean, worst), network in zip(guide(label), networks, strict=True):
        of = "emoji", scenario, network
        runs = [
            100 * np.array(run["accuracies"])
            for run in stir
            if (run["data"], run["scenario"], run["network"]) == of
        ]
        assert bool(runs) == bool(mean)
        if runs:
            assert agrees(mean, np.mean(runs))
            assert agrees(worst, np.mean([run.min() for run in runs]))


@pytest.mark.parametrize(
    "label", ["digits, centered", "digits at any", "CIFAR-10, 10 000"]
)
def test_digits_and_photographs_in_the_guide(label, records):
    """They are those of the page of peers, or of a record."""
    of_peers = [
        {size: float(cell.partition(" ")[0].strip("*")) for size, cell in row.items()}
        for _, row in rows("docs/results/peers")
        if len(row) == 10
    ]
    for row in of_peers:  # single runs
        row["worst"] = min(row[size] for size in SIZES)
    for mean, worst in guide(label):
        if mean:
            assert any(
                agrees(mean, row["mean"]) and (not worst or agrees(worst, row["worst"]))
                for row in records + of_peers
            )


def test_windows_and_density():
    """The mean of all sizes, by density and width of the windows."""
    known: dict[tuple[str, str], list] = {}
    for column, file in enumerate(("digits", "fashion_mnist", "cifar10")):
        text = (RESULTS / "sampling" / f"{file}.json").read_text(encoding="utf-8")
        for run in json.loads(text):
            key = run["setting"].replace("/", ", "), column
            known.setdefault(key, []).append(100 * np.mean(run["accuracies"]))
    (table,) = (
        lines
        for header, *lines in tables("docs/results/settings")
        if header[0] == "density, windows"
    )
    stated = {
        (row[0].strip("*"), column): cell
        for row in table
        for column, cell in enumerate(row[2:])
        if cell != "–"
    }
    assert {*stated} == {*known}
    assert all(agrees(stated[key], np.mean(known[key])) for key in known)


@pytest.mark.parametrize(("column", "augmented"), [(1, ""), (2, "-augmented")])
def test_mnist_scale(column, augmented):
    """Mean and standard deviation of six realizations."""
    found = (RESULTS / "mnist_scale").glob(f"realization-[0-5]{augmented}.json")
    runs = [json.loads(file.read_text(encoding="utf-8")) for file in found]
    errors = [100 * run["error"] for run in runs]
    assert len(errors) == 6 and {run["split"] for run in runs} == {"test"}
    (row,) = (
        row
        for _, *rows in tables("docs/results/mnist")
        for row in rows
        if row[0] == "four scale channels"
    )
    assert row[column] == f"{np.mean(errors):.2f} ± {np.std(errors, ddof=1):.2f}"
