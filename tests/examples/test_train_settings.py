"""Options count instead of the defaults, which are the paper's."""

import sys

import pytest


@pytest.fixture
def settings_of(examples, monkeypatch):
    import train_settings

    def settings(*options):
        monkeypatch.setattr(sys, "argv", ["train.py", *options])
        return train_settings.settings_of(train_settings.parse(None))

    return settings


def test_defaults_are_those_of_the_data_set(settings_of):
    found = settings_of("--dataset", "cifar10")
    assert (found.pretrain_epochs, found.epochs) == (40, 50)
    assert (found.pretrain_batch_size, found.batch_size) == (128, 45)
    assert (found.pretrain_learning_rate, found.learning_rate) == (0.01, 0.005)
    assert found.widths == (48, 48, 64, 64, 64, 192, 192, 192, 256)
    assert len(found.sigma0) == 6
    assert len(found.factors) == 9
    assert settings_of("--dataset", "stl10").pooling == "average"


def test_options_count_instead(settings_of):
    found = settings_of(
        *("--dataset", "digits", "--widths", "4", "8", "--sigma0", "1", "2"),
        *("--epochs", "3", "--scale-dropout", "0", "--limit", "10"),
    )
    assert found.widths == (4, 8)
    assert found.sigma0 == (1.0, 2.0)
    assert (found.pretrain_epochs, found.epochs) == (8, 3)
    assert found.scale_dropout == 0
    assert found.limit == 10


def test_one_stage_starts_at_the_full_learning_rate(settings_of):
    found = settings_of("--dataset", "mnist", "--pretrain-epochs", "0")
    assert (found.pretrain_epochs, found.learning_rate) == (0, 0.01)
