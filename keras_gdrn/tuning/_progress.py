"""One line that tells how far a search has come."""

import sys
import time

import keras_tuner
from keras_tuner.engine.trial import Trial, TrialStatus


class Progress:
    """Keeps a line on a terminal up to date; elsewhere prints it where it changes.

    Within the context, Keras Tuner prints nothing.

    Args:
        oracle: Oracle of the search.
    """

    def __init__(self, oracle: keras_tuner.Oracle):
        self.oracle = oracle
        self.verbose = oracle.verbose
        self.begun = time.perf_counter()
        self.deaths = 0
        self.shown = ""

    def __enter__(self) -> "Progress":
        self.oracle.verbose = 0
        return self

    def __exit__(self, *_) -> None:
        self.oracle.verbose = self.verbose
        if sys.stdout.isatty():
            print()

    def show(self, running: int) -> None:
        line = self._line(running)
        if sys.stdout.isatty():
            minutes = (time.perf_counter() - self.begun) / 60
            print(f"\r\033[K{line}; {minutes:.1f} min", end="", flush=True)
        elif line != self.shown:
            print(line, flush=True)
        self.shown = line

    def died(self, name: str, cause: str) -> None:
        self.deaths += 1
        self._say(f"Trial {name}: its process died. {cause}")

    def ended(self, trial: Trial) -> None:
        if trial.status != TrialStatus.COMPLETED and trial.message:
            reason = trial.message.strip().splitlines()[-1]
            self._say(f"Trial {trial.trial_id} failed: {reason}")

    def _say(self, text: str) -> None:
        print(f"\r\033[K{text}" if sys.stdout.isatty() else text, flush=True)

    def _line(self, running: int) -> str:
        trials = [self.oracle.trials[name] for name in self.oracle.end_order]
        done = [trial for trial in trials if trial.status == TrialStatus.COMPLETED]
        of = f" of {self.oracle.max_trials}" if self.oracle.max_trials else ""
        parts = [
            f"Trials: {len(trials)}{of} ended, {running} running",
            f"{len(trials) - len(done)} failed",
        ]
        if self.deaths:
            parts.append(f"{self.deaths} processes died")
        if done:
            sign = 1 if self.oracle.objective.direction == "max" else -1
            best = max(done, key=lambda trial: sign * trial.score)
            name = self.oracle.objective.name
            parts.append(f"best {name} {best.score:.4f} (trial {best.trial_id})")
        return ", ".join(parts)
