"""The answers of predict.py: those of the network, whatever the image files are."""

import json
import os
import sys
from pathlib import Path

import keras
import numpy as np
import pytest

from keras_gdrn.layers import ScaleChannels
from tests.examples._images import network, write_image
from tests.visualization._drawing import assert_draws


@pytest.fixture
def script(examples):
    import predict

    return predict


@pytest.fixture
def run(script, monkeypatch, tmp_path, capsys):
    """Runs the script; returns what it prints, or raises the text of its error."""
    monkeypatch.chdir(tmp_path)

    def on(*arguments):
        monkeypatch.setattr(sys, "argv", ["predict.py", *map(str, arguments)])
        script.main()
        return capsys.readouterr().out

    return on


def saved(path, shape=(16, 16, 3), **options):
    model = network(shape, **options)
    model.save(path)
    return model


@pytest.mark.parametrize("pooling", ["max", "logsumexp", "average"])
def test_answer_is_that_of_the_network(script, pooling):
    model = network(scale_pooling=pooling)
    image = np.random.default_rng(0).random((16, 16, 3)).astype("float32")
    given = script.answer(script.with_scores_of_scales(model), model, image)
    scores = keras.ops.convert_to_numpy(model(image[None]))[0]
    channel = model.get_layer("scale_channels").network
    each = [
        keras.ops.convert_to_numpy(ScaleChannels(channel, [s])(image[None]))[0, 0]
        for s in (0.7, 1.4)
    ]
    assert given.label == np.argmax(scores)
    np.testing.assert_allclose(
        given.confidences, np.exp(scores) / np.exp(scores).sum(), rtol=1e-5
    )
    of_class = np.array(each)[:, given.label]
    np.testing.assert_allclose(given.scores, of_class, rtol=1e-4)
    assert abs(of_class[0] - of_class[1]) > 0.01
    assert given.scale == (0.7, 1.4)[np.argmax(of_class)]


def test_files_of_all_kinds(run, script, tmp_path):
    model = saved("network.keras")
    paths = [
        write_image(tmp_path / "a" / "one.png", (40, 9), 20),
        write_image(tmp_path / "b" / "one.jpg", (16, 16), 150),
        write_image(tmp_path / "gray.png", (5, 30), 90, channels=1),
    ]
    printed = run("network.keras", *paths, "--classes", "dark", "bright").splitlines()
    known = script.with_scores_of_scales(model)
    for path, line in zip(paths, printed[:3], strict=True):
        image = script.placed(script.read_image(path, 3), (16, 16), None, "mirror")
        given = script.answer(known, model, image)
        name, confidence = ("dark", "bright")[given.label], given.confidences.max()
        assert line.startswith(f"{path}: {name}, {100 * confidence:.1f} %, σ₀ = ")
    pictures = sorted(path.name for path in (tmp_path / "runs/predict").iterdir())
    assert pictures == ["1_one.png", "2_one.png", "3_gray.png"]


def test_what_own_data_knows_is_used_and_can_be_overridden(run, tmp_path, script):
    saved("network.keras")
    known = {"classes": ["cat", "dog"], "side": 8, "extension": "zero"}
    (tmp_path / "network.json").write_text(json.dumps(known))
    path = write_image(tmp_path / "one.png", (20, 20), 150)
    assert ": cat, " in (out := run("network.keras", path)) or ": dog, " in out
    assert "class" in run("network.keras", path, "--classes", "class 0", "class 1")
    options = script.parse()
    options.model, options.side = tmp_path / "network.keras", 12
    assert script.what_is_known(options, 2)["side"] == 12


@pytest.mark.parametrize("size", [(20, 40), (40, 20), (7, 7)])
def test_the_shorter_side_is_what_was_asked_for(script, size):
    image = np.full((*size, 1), 255, "uint8")
    white = script.placed(image, (64, 64), 10, "zero")
    assert white.shape == (64, 64, 1)
    rows, columns = (np.count_nonzero(white[..., 0].max(axis=n) > 0.5) for n in (1, 0))
    assert min(rows, columns) == 10
    assert max(rows, columns) == 10 * max(size) // min(size)
    assert script.placed(image, (None, None), 10, "zero").shape[:2] == (rows, columns)
    assert script.placed(image, (16, 16), 30, "zero").min() == 1


def test_picture(script):
    given = script.Answer(
        np.zeros((16, 16, 1)),
        np.array([0.1, 0.7, 0.2]),
        (0.5, 1.0),
        np.array([1.0, 2.0]),
        np.array([0.0, 1.0]),
    )
    figure = script.drawn(given, ["cat", "dog", "a bird of passage"], "dog, 70 %")
    assert_draws(figure)
    _, answers, scales = figure.axes
    widths = [bar.get_width() for bar in answers.patches]
    assert widths == [0.7, 0.2, 0.1]
    assert answers.get_yticklabels()[0].get_text() == "dog"
    colors = [bar.get_facecolor() for bar in scales.patches]
    assert colors[1] == answers.patches[0].get_facecolor() != colors[0]


def test_the_other_files_go_on(run, tmp_path, capsys):
    saved("network.keras")
    (tmp_path / "text.png").write_text("no image")
    good = [write_image(tmp_path / f"{n}.png") for n in (1, 2)]
    with pytest.raises(SystemExit) as stopped:
        run("network.keras", tmp_path / "none.png", good[0], "text.png", good[1])
    errors = str(stopped.value).splitlines()
    assert errors[0].startswith(f"error: {tmp_path / 'none.png'} cannot be read")
    assert errors[1].startswith("text.png cannot be read") and len(errors) == 2
    printed = capsys.readouterr().out.splitlines()
    assert [line.split(":")[0] for line in printed[:2]] == list(map(str, good))


@pytest.mark.parametrize(
    ("name", "picture"),
    [
        (r"a$\frac{1$b", r"1_a$\frac{1$b.png"),
        ("m" * 251, "1_" + "m" * 200 + ".png"),
        (os.fsdecode(b"a\xff"), "1_a.png"),
    ],
)
def test_names_are_drawn_and_printed_as_they_are(run, tmp_path, name, picture):
    saved("network.keras")
    path = write_image(tmp_path / f"{name}.png")
    printed = run("network.keras", path, "--classes", name[:20], f"{name[:19]}$")
    shown = name.replace("\udcff", r"\udcff")
    assert f"{shown}.png: {shown[:19]}" in printed
    assert [path.name for path in (tmp_path / "runs/predict").iterdir()] == [picture]


@pytest.mark.parametrize("error", [OSError("disk full"), MemoryError("none left")])
def test_a_picture_that_fails_is_of_one_file(run, script, monkeypatch, capsys, error):
    saved("network.keras")
    for name in ("1.png", "2.png"):
        write_image(Path(name))
    draw = script.drawn

    def fails(given, classes, title):
        if title.startswith("1.png"):
            raise error
        return draw(given, classes, title)

    monkeypatch.setattr(script, "drawn", fails)
    with pytest.raises(SystemExit) as stopped:
        run("network.keras", "none.png", "1.png", "2.png")
    errors = str(stopped.value).splitlines()
    assert errors[0].startswith("error: none.png cannot be read")
    assert errors[1:] == [f"1.png: {error}"]
    assert capsys.readouterr().out.startswith("2.png: ")


def not_an_image(folder):
    saved("network.keras")
    path = folder / "text.png"
    path.write_text("no image")
    return "network.keras", path


def no_file(folder):
    saved("network.keras")
    return "network.keras", folder / "none.png"


def no_regular_file(folder):
    saved("network.keras")
    os.mkfifo(folder / "pipe.png")
    return "network.keras", folder / "pipe.png"


def no_network(folder):
    return folder / "none.keras", folder / "none.png"


def damaged_network(folder):
    path = folder / "network.keras"
    path.write_text("no network")
    return path, write_image(folder / "one.png")


def other_channels(folder):
    saved("network.keras", (16, 16, 2))
    return "network.keras", write_image(folder / "one.png")


def other_names(folder):
    saved("network.keras")
    path = write_image(folder / "one.png")
    return "network.keras", path, "--classes", "cat", "dog", "bird"


def any_size(folder):
    saved("network.keras", (None, None, 3))
    return "network.keras", write_image(folder / "one.png")


def plain(folder):
    image = keras.Input((16, 16, 3))
    x = keras.layers.GlobalMaxPooling2D()(image)
    keras.Model(image, x, name="plain").save("network.keras")
    return "network.keras", write_image(folder / "one.png")


def code(folder):
    image = keras.Input((16, 16, 3))
    x = keras.layers.Lambda(lambda x: x[:, 0, 0])(image)
    keras.Model(image, x).save("network.keras")
    return "network.keras", write_image(folder / "one.png")


REFUSED = {
    not_an_image: "text.png cannot be read as an image",
    no_file: "none.png cannot be read as an image: .*No such file",
    no_regular_file: "pipe.png cannot be read as an image: it must be a regular file",
    no_network: "must be a .keras file. Received: .*none.keras",
    damaged_network: "network.keras is no Keras model",
    other_channels: r"1 or 3 channels. Received: .* \(None, 16, 16, 2\)",
    other_names: r"each of the 2 classes .* Received: 3 names",
    any_size: "say by --side",
    plain: "one `ScalePooling`. Received: .* 'plain' with 0",
    code: "`?Lambda`? layer",
}


@pytest.mark.parametrize("arguments", REFUSED)
def test_refused(run, arguments, tmp_path):
    with pytest.raises(SystemExit, match=r"(?s)error: .*" + REFUSED[arguments]):
        run(*arguments(tmp_path))
