"""All that `reproduce.py` can do, by section of the paper, and the time it takes."""

from budgets import within
from estimate import duration, machine, seconds
from experiments import EXPERIMENTS
from figures import FIGURES


def listing(budget: str) -> str:
    """All experiments and figures by section of the paper, with the time they take."""
    sections: dict[str, list[str]] = {}
    width = max(map(len, (*EXPERIMENTS, *FIGURES)))
    for name, experiment in EXPERIMENTS.items():
        time = duration(seconds(within(experiment, budget)))
        line = f"  {name.ljust(width)}  {time.rjust(8)}  {experiment.dataset}"
        sections.setdefault(experiment.what, []).append(line)
    for name, figure in FIGURES.items():
        sections.setdefault(figure.where, []).append(f"  --figure {name}")
    order = sorted(sections, key=lambda what: (_rank(what), what))
    parts = ["\n".join([what, *sections[what]]) for what in order]
    return "\n\n".join([*parts, f"Times: rough, on {machine()}, --budget {budget}."])


def _rank(what: str) -> int:
    """Sections, then appendices, then what is not in the paper."""
    beginnings = ("Sec.", "A.", "")
    return next(n for n, begin in enumerate(beginnings) if what.startswith(begin))
