"""The table and the figure of a search, of trials that train nothing."""

import keras_tuner
import pytest

from keras_gdrn.tuning import plot_trials, report, trained_trials

pytestmark = pytest.mark.filterwarnings(
    "ignore:(currentThread|getName):DeprecationWarning:keras_tuner"
)


class Networks(keras_tuner.HyperModel):
    """Of two widths and, one after the other, the ratios 1.25, 2.25, …"""

    def __init__(self, count):
        super().__init__()
        self.ratios = [1.25 + number for number in range(count)]

    def build(self, hp):
        hp.Choice("ratio", self.ratios)
        for name, value in (
            *(("blocks", 1), ("stem_width", 8), ("width_1", 16), ("width_2", 24)),
            *(("scale_pooling", "max"), ("tuner/epochs", 3)),
        ):
            hp.Fixed(name, value)


class Search(keras_tuner.GridSearch):
    """Trials that end with these accuracies; None is a failure, 0 over the budget."""

    def __init__(self, accuracies, folder, direction="max"):
        self.accuracies = accuracies
        objective = keras_tuner.Objective("val_accuracy", direction)
        super().__init__(
            Networks(len(accuracies)), objective=objective, directory=folder
        )

    def run_trial(self, trial, **_):
        accuracy = self.accuracies[int(trial.hyperparameters["ratio"] - 1)]
        if accuracy is None:
            raise keras_tuner.errors.FailedTrialError
        cost = {"parameters": 1234, "multiply_adds": 2_500_000}
        return {**cost, "over_budget": int(not accuracy), "val_accuracy": accuracy}


@pytest.fixture
def searched(tmp_path):
    """Makes a search, and runs it."""

    def run(*accuracies, **options):
        tuner = Search(accuracies, tmp_path, **options)
        tuner.search(verbose=0)
        return tuner

    return run


def ratios(tuner):
    return [trial.hyperparameters["ratio"] for trial in trained_trials(tuner)]


def test_best_first_and_without_those_that_were_not_trained(searched):
    tuner = searched(0.5, None, 0.75, 0.0)
    assert ratios(tuner) == [3.25, 1.25]
    counts, table = report(tuner).split("\n\n")
    assert counts == (
        "4 trials: 2 trained, 1 not trained because they were over the budget, "
        "1 failed."
    )
    header, _, best, second = (
        [cell.strip() for cell in line.strip("|").split("|")]
        for line in table.splitlines()
    )
    assert header == [
        *("trial", "val_accuracy", "parameters", "multiply-adds"),
        *("widths", "ratio", "scale pooling"),
    ]
    assert best[1:] == ["0.7500", "1,234", "2.5M", "8, 16", "3.25", "max"]
    assert second[1] == "0.5000"
    plots = plot_trials(tuner).axes
    dots = [plot.collections[0].get_offsets().tolist() for plot in plots]
    assert dots[0] == [[3.25, 0.75], [1.25, 0.5]]
    assert dots[2] == [[2.5, 0.75], [2.5, 0.5]]
    assert plots[0].get_ylabel() == "val_accuracy"


def test_smallest_first_where_the_objective_is_minimized(searched):
    assert ratios(searched(0.5, 0.75, direction="min")) == [1.25, 2.25]


def test_no_network_was_trained(searched):
    assert report(searched(0.0)).startswith("1 trials: 0 trained, 1 not trained")
