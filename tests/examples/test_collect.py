"""The table of the results of several runs."""

import numpy as np

FACTORS = [0.5, 1.0, 2.0]


def record(name, first_stage, accuracies):
    return {
        "factors": FACTORS,
        "accuracies": {f"{name}, first_stage": first_stage, name: accuracies},
        "environment": {
            "cores": 2,
            "processor": "a processor",
            "gpus": [],
            "keras": "3",
            "backend": "tensorflow",
        },
        "seconds": {"first_stage": 60, "in all": 90},
        "command": f"train {name}",
        "seed": 0,
        "date": "2026-11-21",
        "parameters": 1000,
        "policy": "float32",
    }


def rows(text):
    lines = [line for line in text.splitlines() if line.startswith("|")]
    return [line.split("|")[1].strip() for line in lines[2:]]


def test_networks_of_one_name_are_told_apart(examples):
    from collect import curves, report

    random = np.random.default_rng(0)
    records = [record("one", *random.random((2, 3)).tolist()) for _ in range(2)]
    records.append(record("two", *random.random((2, 3)).tolist()))
    options = ("", "--budget medium --out runs/x", "--budget medium")
    for found, given in zip(records, options, strict=True):
        found["command"] = f"python examples/reproduce.py one {given}"
    expected = [
        *("one, first stage", "one"),
        *("one, first stage (budget medium)", "one (budget medium)"),
        *("two, first stage", "two"),
    ]
    assert rows(report(records)) == expected
    assert list(curves(records)) == expected


def test_a_stage_that_runs_share_has_one_row_and_one_curve(examples):
    from collect import curves, report

    random = np.random.default_rng(0)
    shared, own, *others = random.random((5, 3)).tolist()
    records = [
        record("one", shared, others[0]),
        record("two", shared, others[1]),
        record("three", own, others[2]),
    ]
    names = rows(report(records))
    assert names == ["one, first stage", "one", "two", "three, first stage", "three"]
    assert list(curves(records)) == names


def test_seeds_are_put_together(examples):
    from collect import over_seeds

    def run(seed, accuracies, more="", name="one", first_stage=0.5):
        command = f"python examples/reproduce.py {name} --budget small --seed {seed}"
        found = record(name, [first_stage] * 3, accuracies)
        return found | {"command": command + more, "seed": seed}

    text = over_seeds(
        [
            run(0, [0.5, 0.9, 0.7]),
            run(1, [0.7, 0.9, 0.5], " --out runs/other"),
            run(
                0,
                [0.8, 0.8, 0.8],
                " --jit --widths 8 16 --receptive-field whole",
                "one",
                0.6,
            ),
            run(0, [0.4, 0.4, 0.4], " --start-from runs/one", "two"),
            run(1, [0.6, 0.6, 0.6], " --start-from runs/other", "two"),
        ]
    )
    table = [
        [cell.strip() for cell in line.strip("|").split("|")]
        for line in text.splitlines()
        if line.startswith(("| one", "| two"))
    ]
    deviation = np.std([50, 70], ddof=1)
    together = "\N{NO-BREAK SPACE}"
    ends, middle = f"60.0 ±{together}{deviation:.1f}", f"90.0 ±{together}0.0"
    options = "jit, widths 8 16, receptive-field whole"
    assert table == [
        ["one, first stage", "2", *[f"50.0 ±{together}0.0"] * 4],
        ["one", "2", ends, middle, ends, f"70.0 ±{together}0.0"],
        [f"one, first stage, {options}", "1", *["60.0"] * 4],
        [f"one, {options}", "1", *["80.0"] * 4],
        ["two", "2", *[f"50.0 ±{together}{deviation:.1f}"] * 4],
    ]


def test_what_was_published_has_a_column_where_anything_was(examples):
    from collect import report
    from experiments import EXPERIMENTS

    paper = next(name for name, of in EXPERIMENTS.items() if of.published)
    one, other = (record(name, [0.5] * 3, [0.9] * 3) for name in (paper, "one"))
    assert "published" not in report([other])
    row = next(line for line in report([one, other]).splitlines() if "90.00" in line)
    assert EXPERIMENTS[paper].published in row
