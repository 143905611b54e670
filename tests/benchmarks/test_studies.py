"""Studies of what one would take instead: views, clutter, sizes, runs on little data.

`magnified` is exact: what differs is the interpolation.
"""

import argparse
import json
import re
import types
from unittest import mock

import keras
import numpy as np
import pytest

from keras_gdrn.data import SIZE_FACTORS, STIR_SCENARIOS, rescaled_arrays, stir_arrays
from keras_gdrn.layers import ScaleChannels
from keras_gdrn.models import (
    _from_preset,
    architecture,
    count_parameters,
    from_preset,
    list_presets,
)
from keras_gdrn.models._card import read_card
from keras_gdrn.training import Augmentation
from keras_gdrn.training._augment import spline_basis
from tests.theory.assertions import difference


@pytest.fixture
def views(studies):
    """Of 28×28 pixels, or other ones: `(scale, image, row, column, channel)`."""

    def at_scales(images, *scales, size=28):
        maps = ScaleChannels(studies("foveation").Foveation(size), scales, None)(images)
        return np.moveaxis(keras.ops.convert_to_numpy(maps), 1, 0)

    return at_scales


@pytest.fixture(scope="module")
def images():
    return rescaled_arrays("digits", "test", canvas=40, limit=6)[0]


@pytest.fixture
def peers(studies):
    return studies("peers")


@pytest.fixture
def of_stir(studies):
    return studies("stir_networks")


def magnified(images, factor: float, blur: float):
    """Exactly: as the sum of cosines that passes through the pixels, blurred."""
    size = images.shape[1]
    waves = np.pi * np.arange(size) / size
    analysis = np.cos(np.outer(waves, np.arange(size) + 0.5)) * (2 / size)
    analysis[0] /= 2
    pixels = 2 * round(factor * size / 2)
    points = (np.arange(pixels) - (pixels - 1) / 2) / factor + size / 2
    at_points = np.cos(np.outer(points, waves)) * np.exp(-((waves * blur) ** 2) / 2)
    rows = at_points @ analysis
    return np.einsum("yh,nhwc,xw->nyxc", rows, images, rows).astype("float32")


@pytest.mark.parametrize("factor", [0.5, 2**-0.5, 2**0.25, 2])
def test_a_magnified_image_is_seen_as_it_was(views, images, factor):
    smooth, larger = (magnified(images, f, blur=2.0) for f in (1, factor))
    (expected,) = views(smooth, 1.0)
    same, other = views(larger, factor, 1.0)
    assert difference(same, expected) < 0.015
    assert difference(other, expected) > 0.3


def test_a_view_is_the_center_without_what_it_cannot_show(views, images):
    np.testing.assert_allclose(views(images, 1.0)[0], images[:, 6:34, 6:34], atol=1e-6)
    # Beyond the image there is nothing.
    inside = np.pad(np.ones((20, 20)), 4)
    seen = views(np.ones((1, 40, 40, 1), "float32"), 2.0)
    np.testing.assert_allclose(seen[0, 0, :, :, 0], inside, atol=1e-6)
    stripes = np.tile([0.0, 1.0], 20) * np.ones((1, 40, 1))
    seen = views(stripes[..., None].astype("float32"), 3.0, size=8)
    assert np.ptp(seen) < 0.1
    assert np.mean(seen) == pytest.approx(0.5, abs=0.01)


@pytest.mark.parametrize("factor", [0.5, 2])
def test_among_clutter_the_digit_is_whole_and_anywhere(peers, factor, monkeypatch):
    alone, labels = rescaled_arrays("digits", "train", factor, canvas=64, limit=12)
    images, found_labels = peers.images_of("cluttered", "train", factor, 12)
    np.testing.assert_array_equal(found_labels, labels)
    places = set()
    for image, digit in zip(images, map(peers.boxed, alone), strict=True):
        windows = np.lib.stride_tricks.sliding_window_view(image, digit.shape)
        (found,) = np.argwhere(np.all(windows == digit, axis=(3, 4, 5)))
        places.add(tuple(found))
    assert len(places) == len(images)
    assert images.sum() > 1.1 * alone.sum()  # a large digit may leave no place
    # In the test, the same digits would be elsewhere.
    monkeypatch.setattr(peers, "rescaled_arrays", lambda *_, **__: (alone, labels))
    others, _ = peers.images_of("cluttered", "test", factor, 12)
    assert not np.array_equal(images, others)


def test_resized_copies_are_of_all_sizes(peers):
    images, labels = peers.training_images("centered", True, 3)
    sizes = [max(peers.boxed(image).shape) for image in images]
    assert len(labels) == 30 and min(sizes) <= 10 and max(sizes) >= 36
    assert len(peers.training_images("centered", False, 3)[1]) == 3


@pytest.mark.parametrize("scenario", [1, 2, 3, 4])
def test_digits_are_bent_as_steeply_at_any_size(of_stir, scenario):
    for stage in of_stir.training("mnist", scenario):
        bending, side = stage.recipe.augmentation, stage.input_shape[0]
        assert bending == Augmentation(elastic=bending.elastic)
        steepest = np.abs(np.diff(spline_basis(side), axis=0)).sum(1).max()
        # Of neighbors, how far one moves more than the other; below 1 nothing folds.
        assert bending.elastic * steepest == pytest.approx(0.637, abs=0.003)
    for stage in of_stir.training("emoji", scenario):
        assert stage.recipe.augmentation == Augmentation()


def test_tries_are_judged_by_images_that_were_held_out(peers, monkeypatch):
    train = mock.Mock()
    test = mock.Mock(return_value=argparse.Namespace(accuracies=np.zeros(9)))
    monkeypatch.setattr(peers, "trained", train)
    monkeypatch.setattr(peers, "scale_generalization", test)
    peers.compare_settings(
        "cnn", argparse.Namespace(task="centered", limit=4, seeds=[0])
    )
    assert [call.args[3] for call in train.call_args_list] == [3] * 3
    _, tests = test.call_args.args
    images, labels = peers.images_of("centered", "train", 1.0, 4)
    np.testing.assert_array_equal(tests[1.0][0], images[3:])
    np.testing.assert_array_equal(tests[1.0][1], labels[3:])
    assert len(tests) == 9


@pytest.mark.parametrize(
    ("task", "mode"), [("centered", "center"), ("cluttered", "max")]
)
def test_networks_have_about_as_many_weights(peers, task, mode):
    networks = {name: of.build(task) for name, of in peers.NETWORKS.items()}
    counts = [*map(count_parameters, networks.values())]
    assert max(counts) < 1.15 * min(counts)
    channel = networks["gauss_der"].get_layer("scale_channels").network
    assert channel.get_layer("spatial_selection").mode == mode
    finest = [networks[name].get_layer("scale_channels") for name in peers.OURS]
    assert [layer.density for layer in finest] == [1.0, None]


@pytest.mark.slow
def test_every_network_has_a_row(table_of, peers, tmp_path, monkeypatch):
    monkeypatch.setattr("keras_gdrn.data.SIZE_FACTORS", (0.5, 1.0))
    monkeypatch.setattr("keras_gdrn.models.SIX_SCALES", (0.5, 1.0))
    little = ["--epochs", 1, "--limit", 4, "--out", tmp_path]
    rows = table_of("studies/peers.py", "centered", *little)
    assert [title for title, *_ in rows] == list(peers.NETWORKS)
    for _, *accuracies, _ in rows:
        assert len(accuracies) == 2 + 2
        assert all(0 <= float(accuracy) <= 100 for accuracy in accuracies)
    assert peers.spread(np.array([1.0, 3.0])) == "2.0 ± 1.4"
    (record,) = tmp_path.iterdir()
    before = record.read_text(encoding="utf-8")
    assert [run["network"] for run in json.loads(before)] == list(peers.NETWORKS)
    assert table_of("studies/peers.py", "centered", *little) == rows
    assert record.read_text(encoding="utf-8") == before  # nothing is run again


def test_training_goes_on_with_each_image_at_one_of_nine_sizes(studies):
    images, labels = studies("natural_peers").resized("digits", 40, 12, None)
    for n, factor in enumerate((*SIZE_FACTORS, *SIZE_FACTORS[:3])):
        ours, label = rescaled_arrays("digits", "train", factor, canvas=40, limit=12)
        np.testing.assert_array_equal(images[n], ours[n])
        assert labels[n] == label[n]


@pytest.fixture(scope="module")
def plain():
    """A network of a few weights, on 20×20 pixels."""
    image = keras.Input((20, 20, 1))
    x = keras.layers.Conv2D(10, 3, activation="relu")(image)
    return keras.Model(image, keras.layers.GlobalMaxPooling2D()(x))


def test_the_best_of_all_views_answers(studies, plain):
    views = studies("natural_peers").foveated(plain)
    images = rescaled_arrays("digits", "test", canvas=40, limit=6)[0]
    _, channels, _ = views.layers
    scores = channels(images)
    assert scores.shape[1] == 5
    center = plain(images[:, 10:30, 10:30])
    np.testing.assert_allclose(scores[:, 2], center, atol=1e-5)
    np.testing.assert_allclose(views(images), np.max(scores, axis=1), atol=1e-6)
    assert difference(np.array(views(images)), np.array(center)) > 0.01


@pytest.mark.slow
def test_a_plain_network_is_trained_on(table_of, plain, tmp_path):
    plain.save(tmp_path / "model.keras")
    little = ["--limit", 9, "--test-limit", 5, "--out", tmp_path / "out"]
    rows = table_of("studies/natural_peers.py", tmp_path, "digits", *little)
    assert [name for name, *_ in rows] == [
        "plain", "foveated as it is", "foveated", "resized"
    ]  # fmt: skip
    for _, *accuracies, mean, _ in rows:
        assert float(mean) == pytest.approx(np.mean(np.float64(accuracies)), abs=0.1)
    trained = keras.saving.load_model(tmp_path / "out" / "resized" / "model.keras")
    assert not np.array_equal(trained.get_weights()[0], plain.get_weights()[0])


@pytest.mark.slow
@pytest.mark.usefixtures("step_by_step")
def test_a_run_is_collected(command, tmp_path):
    study, out = "benchmarks/studies/stir.py", ("--out", tmp_path)
    done = command(study, "emoji", 3, "--epochs", 1, "--limit", 1, *out)
    assert done.returncode == 0, done.stderr
    result = json.loads((tmp_path / "emoji-3-seed0.json").read_text())
    (trained,) = result["trained sigma0"]
    assert trained == pytest.approx([2, 2.83], abs=0.01)
    assert len(result["tested sigma0"]) == 6
    assert result["validated sizes"] == [49, 53, 57, 61]
    assert len(result["accuracies"]) == 48
    tested = from_preset(tmp_path / "emoji-3-seed0" / "emoji")
    assert len(tested.get_layer("scale_channels").sigma0) == 6
    for seed, smallest in enumerate((0.0, 1.0)):
        known = {**result, "seed": seed, "accuracies": 24 * [smallest] + 24 * [1.0]}
        (tmp_path / f"emoji-3-seed{seed}.json").write_text(json.dumps(known))
    done = command(study, "--collect", *out)
    assert done.returncode == 0, done.stderr
    assert re.search(
        r"\| emoji, 49 to 64 \| gauss_der \| +0 1 \| +75.0 ± 35.4 \| +50.0 ± 70.7 "
        r"\| +69.1 \| +6.9 ",
        done.stdout,
    )
    assert (tmp_path / "emoji.png").stat().st_size > 10_000
    assert not (tmp_path / "mnist.png").exists()


def test_objects_are_resized_to_any_size_anywhere(of_stir):
    images, _ = stir_arrays("emoji", "train", (20, 24))
    copies = of_stir.resized(images, 3, seed=0)
    assert copies.shape == (3 * len(images), 64, 64, 1)
    assert copies.min() >= 0 and copies.max() <= 1
    ends = np.array([[(x.start, x.stop) for x in of_stir.lit(i)] for i in copies])
    sizes = np.diff(ends).max(axis=(1, 2))
    assert sizes.min() < 20 and sizes.max() > 60  # a rim may be rounded to black
    assert len(np.unique(ends[..., 0], axis=0)) > len(copies) / 2


@pytest.mark.parametrize("data", ["emoji", "mnist"])
@pytest.mark.parametrize("scenario", [1, 2, 3, 4])
def test_training_sees_no_other_sizes_than_its_scenario_has(data, scenario, of_stir):
    stages = of_stir.training(data, scenario)
    stages += of_stir.PEERS["cnn_resized"].training(data, scenario)
    for stage in stages:
        assert set(stage.sizes) <= set(STIR_SCENARIOS[scenario])
        assert max(stage.sizes) <= (stage.input_shape or (64,))[0]


@pytest.mark.parametrize("name", ["cnn", "pyramid"])
def test_peers_have_about_as_many_weights_as_the_network(name, of_stir):
    peer = of_stir.PEERS[name].build(36)
    assert peer.output_shape == (None, 36)
    ours = count_parameters(of_stir.gauss_der(36))
    assert count_parameters(peer) == pytest.approx(ours, rel=0.1)


@pytest.mark.slow
def test_densities_and_windows_are_compared(studies, tmp_path, monkeypatch):
    sampling = studies("sampling")
    network = {"digits": ((4, 4), 1.35, 24, 1)}
    counts = {"IMAGES": 8, "JOINT_IMAGES": 4, "TEST_IMAGES": 4, "NETWORKS": network}
    scales = {"FACTORS": (0.5, 1.0), "SIX_SCALES": (0.5, 1.0)}
    for name, value in (counts | scales).items():
        monkeypatch.setattr(sampling, name, value)
    rescaled = sampling.rescaled

    def without_validation(name, split, *args, **kwargs):
        return rescaled(name, split.replace("validation", "test"), *args, **kwargs)

    monkeypatch.setattr(sampling, "rescaled", without_validation)
    command = ["sampling.py", "digits", "--only", "1/1.5", "--out", str(tmp_path)]
    for seeds in (["0"], ["0", "1"]):  # the first run is not repeated
        monkeypatch.setattr("sys.argv", [*command, "--seeds", *seeds])
        sampling.main()
    runs = json.loads((tmp_path / "digits.json").read_text(encoding="utf-8"))
    assert [(run["setting"], run["seed"]) for run in runs] == [
        ("1/1.5", 0),
        ("1/1.5", 1),
    ]
    assert all(len(run["accuracies"]) == 2 for run in runs)


def test_predictions_of_peers_are_timed(peers, tmp_path, monkeypatch):
    command = ["peers.py", "centered", "--times", "--only", "cnn"]
    monkeypatch.setattr("sys.argv", [*command, "--out", str(tmp_path)])
    peers.main()
    found = json.loads((tmp_path / "centered_times.json").read_text(encoding="utf-8"))
    assert 0 < found["an image (ms)"]["cnn"] < 1000


@pytest.mark.slow
def test_a_card_is_renewed(studies, tmp_path, monkeypatch):
    module = studies("trained")
    monkeypatch.setattr(module, "SIZE_FACTORS", (1.0, 2.0))
    monkeypatch.setattr(module, "FOLDER", tmp_path)
    (tmp_path / "digits").mkdir()
    command = ["trained.py", "digits", "--limit", "3"]
    monkeypatch.setattr("sys.argv", [*command, "--dry-run"])
    module.main()
    assert not list(tmp_path.rglob("*.json"))
    monkeypatch.setattr("sys.argv", command)
    module.main()
    card, before = read_card(tmp_path / "digits"), list_presets()["digits"]
    model = from_preset("digits", input_shape=(40, 40, 1))
    for factor, name in ((1.0, "1"), (2.0, "2")):
        images, labels = rescaled_arrays("digits", "test", factor, canvas=40, limit=3)
        right = model.predict(images, verbose=0).argmax(axis=-1) == labels
        assert card.accuracy[name] == pytest.approx(right.mean(), abs=1e-3)
    assert list(card.shift_accuracy) == [*"048", "12"]
    assert (card.test_images, card.shift_images) == (3, 3)
    assert (card.command, card.sha256) == (before.command, before.sha256)


def test_a_run_becomes_a_trained_network(studies, tmp_path, monkeypatch):
    """`from_preset` loads it."""
    module = studies("make_trained")
    monkeypatch.setattr(module, "SHIFT_IMAGES", 3)
    expected = architecture("digits", widths=(2, 2), sigma0=(1.0,))
    run = tmp_path / "run"
    run.mkdir()
    expected.save(run / "model.keras")
    record = {"command": "python x.py", "seed": 3, "date": "2026-01-01"}
    record |= {"environment": {}, "name": "both", "factors": [0.5, 2.0]}
    record |= {"accuracies": {"both, one": [0.1, 0.1], "both": [0.7, 0.90001]}}
    record |= {"experiment": {"test_limit": 20, "test_canvas": 60}}
    (run / "results.json").write_text(json.dumps(record), encoding="utf-8")
    command = ["make_trained.py", str(run), "digits", "--out", str(tmp_path)]
    monkeypatch.setattr("sys.argv", command)
    module.main()
    monkeypatch.setattr(_from_preset, "FOLDER", tmp_path)
    card, loaded = _from_preset.list_presets()["digits"], from_preset("digits")
    assert (card.test_images, card.shift_images) == (20, 3)
    assert card.accuracy == {"0.5": 0.7, "2": 0.90001}
    assert card.data.endswith("the last 797 to test on, extended to 60×60 pixels")
    images, labels = rescaled_arrays("digits", "test", limit=3)
    right = expected.predict(images, verbose=0).argmax(axis=-1) == labels
    assert card.shift_accuracy["0"] == pytest.approx(right.mean(), abs=1e-3)
    assert card.command == "python x.py (seed 3)"
    assert card.object_sizes == (10, 40) and [*card.shift_accuracy] == [*"048", "12"]
    assert loaded.get_layer("preprocess").object_size == 20
    np.testing.assert_equal(loaded.get_weights(), expected.get_weights())


@pytest.mark.parametrize("augment", [[], ["--augment"]])
def test_mnist_scale(studies, tmp_path, monkeypatch, augment, capsys):
    study = studies("mnist_scale")
    monkeypatch.setattr(study, "WIDTHS", (4, 4))
    given = []

    def few(split, realization, **where):
        images, labels = rescaled_arrays("digits", "test", canvas=28, limit=8)
        return images, labels

    def fit(model, recipe, data, **options):
        given.append((recipe.epochs, *data))
        return types.SimpleNamespace(history={"seconds": [60.0]})

    monkeypatch.setattr(study, "mnist_scale", few)
    monkeypatch.setattr(study, "fit", fit)
    out = ["--out", str(tmp_path)]
    monkeypatch.setattr("sys.argv", ["mnist_scale.py", "0", "1", *augment, *out])
    study.main()
    assert "2 realizations" in capsys.readouterr().out
    (epochs, images, labels), _ = given
    assert epochs * len(images) == 8 * study.EPOCHS
    original, of_one = few("train", 0)
    np.testing.assert_array_equal(images[:8], original)
    np.testing.assert_array_equal(labels, np.tile(of_one, len(images) // 8))
    assert len(np.unique(images, axis=0)) == len(images)
