"""One line that tells how far a search has come."""

import sys

import keras_tuner
from keras_tuner.engine.trial import Trial, TrialStatus


class Progress:
    """Keeps a line on a terminal up to date; elsewhere prints it where it changes.

    Within the context, Keras Tuner prints nothing.

    Args:
        oracle: Oracle of the search.
    """

    def __init__(self, oracle: keras_tuner.Oracle):
        self.oracle, self.verbose = oracle, oracle.verbose
        self.deaths, self.shown = 0, ""

    def __enter__(self) -> "Progress":
        self.oracle.verbose = 0
        return self

    def __exit__(self, *_) -> None:
        self.oracle.verbose = self.verbose
        if sys.stdout.isatty():
            print()

    def show(self, running: int) -> None:
        line = self._line(running)
        if line != self.shown:
            self._say(line, end="" if sys.stdout.isatty() else "\n")
        self.shown = line

    def died(self, trial: Trial, cause: str) -> None:
        self.deaths += 1
        self._say(f"Trial {trial.trial_id}: its process died. {cause}")

    def ended(self, trial: Trial) -> None:
        if trial.status != TrialStatus.COMPLETED and trial.message:
            reason = trial.message.strip().splitlines()[-1]
            self._say(f"Trial {trial.trial_id} failed: {reason}")

    def _say(self, text: str, end: str = "\n") -> None:
        over = "\r\033[K" if sys.stdout.isatty() else ""  # the line that is there
        print(f"{over}{text}", end=end, flush=True)

    def _line(self, running: int) -> str:
        trials = [self.oracle.trials[name] for name in self.oracle.end_order]
        done = [trial for trial in trials if trial.status == TrialStatus.COMPLETED]
        of = f" of {self.oracle.max_trials}" if self.oracle.max_trials else ""
        line = (
            f"Trials: {len(trials)}{of} ended, {running} running, "
            f"{len(trials) - len(done)} failed"
        )
        if self.deaths:
            line += f", {self.deaths} processes died"
        if done:
            sign = 1 if self.oracle.objective.direction == "max" else -1
            best = max(done, key=lambda trial: sign * trial.score)
            name = self.oracle.objective.name
            line += f", best {name} {best.score:.4f} (trial {best.trial_id})"
        return line
