"""The estimate of a search, against counts by hand."""

import re

import keras_tuner
import pytest

from keras_gdrn.models import with_sigma0
from keras_gdrn.training import Recipe
from keras_gdrn.tuning import (
    GaussDerResNetHyperModel,
    SearchSpace,
    _cost,
    multiply_adds,
    search_cost,
)

ONE = SearchSpace(
    blocks=(1,), stem_width=(2,), width=(3,), sigma0_spacing=(2.0,)
).only()


@pytest.mark.parametrize(("single", "joint"), [(0, 4), (3, 1), (9, 0)])
def test_count_by_hand(single, joint, monkeypatch):
    monkeypatch.setattr(_cost, "_speed", lambda: 1e6)
    hypermodel = GaussDerResNetHyperModel(
        (12, 12, 1), 3, space=ONE, recipe=Recipe(4, 8), single_scale_epochs=single
    )
    model = hypermodel.build(keras_tuner.HyperParameters())
    passes = joint * multiply_adds(model)
    passes += (4 - joint) * multiply_adds(with_sigma0(model, [1.0]))
    text = search_cost(hypermodel, 50, trials=7)
    assert text.startswith("7 trials of 4 epochs over 50 images: ")
    assert f"{3 * 7 * 50 * passes:.1e} in all" in text
    minutes = float(re.search(r"take ([\d.]+) minutes", text)[1])
    assert minutes == pytest.approx(3 * 7 * 50 * passes / 1e6 / 60, abs=0.06)


def test_speed_of_this_machine():
    assert 1e8 < _cost._speed() < 1e15
