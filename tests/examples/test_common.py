"""What the examples share: how many images are tested at a time."""

import math

import keras
import pytest

from keras_gdrn.models import gauss_der_resnet, scale_channel


@pytest.fixture
def common(examples):
    import common

    return common


def bytes_of_map(scales, canvas, width):
    return 4 * scales * math.prod(canvas) * width


@pytest.mark.parametrize("side", [24, 96, 192, 400])
@pytest.mark.parametrize("scales", [1, 6, 12])
def test_maps_of_a_test_are_bounded(side, scales, common):
    sigma0 = [2 ** (n / 4) for n in range(scales)]
    model = gauss_der_resnet((None, None, 3), 10, (8, 256), 1.2, sigma0)
    batch, of_image = (
        common.test_batch(model, (side, side)),
        bytes_of_map(scales, (side, side), 256),
    )
    assert batch == 1 or batch * of_image <= common.MAP_BYTES
    # And as many as that allows.
    assert batch == common.LARGEST or (batch + 1) * of_image > common.MAP_BYTES


def test_the_densest_network_of_the_paper_is_tested_image_by_image(common):
    """Twenty images had maps of 9 GB."""
    from experiments import EXPERIMENTS

    dense = EXPERIMENTS["stl10_average_dense"]
    widths, sigma0 = dense.network.widths[-1:], dense.test_sigma0
    model = gauss_der_resnet((192, 192, 3), 10, widths, 1.2, sigma0)
    assert common.test_batch(model, (192, 192)) == 1
    assert 20 * bytes_of_map(12, (192, 192), 256) > 9e9


def test_networks_without_scale_channels(common):
    plain = keras.Sequential([keras.Input((20, 20, 3)), keras.layers.Conv2D(512, 3)])
    assert common.test_batch(plain, (20, 20)) == common.LARGEST
    assert common.test_batch(plain, (1000, 1000)) == 1
    channel = scale_channel((20, 20, 3), 2, [4], 1.2)
    assert common.test_batch(channel, (20, 20)) == common.LARGEST


def test_an_experiment_is_tested_so(common, examples, monkeypatch, tmp_path):
    import runner
    from budgets import within
    from experiments import EXPERIMENTS

    experiment = within(EXPERIMENTS["stl10_average_dense"], "smoke")
    model = runner.network(experiment, experiment.test_sigma0, 0)
    asked = []
    monkeypatch.setattr(runner, "evaluate", lambda *_: None)
    monkeypatch.setattr(
        runner, "test_sets", lambda *_, **given: asked.append(given["batch_size"])
    )
    monkeypatch.setattr(common, "MAP_BYTES", 7 * bytes_of_map(3, (24, 24), 10))
    runner.tested(model, experiment, runner.Options(tmp_path))
    assert asked == [7]
