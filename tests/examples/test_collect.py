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


def test_a_stage_that_runs_share_has_one_row(examples):
    from collect import report

    random = np.random.default_rng(0)
    shared, own, *others = random.random((5, 3)).tolist()
    records = [
        record("one", shared, others[0]),
        record("two", shared, others[1]),
        record("three", own, others[2]),
    ]
    names = [
        line.split("|")[1].strip()
        for line in report(records).splitlines()[4:]
        if line.startswith("|")
    ]
    assert names == ["one, first_stage", "one", "two", "three, first_stage", "three"]
