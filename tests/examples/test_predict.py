"""The answers of predict.py are those of `classify`, and one bad file is one error."""

import importlib
import os

import keras
import pytest

from keras_gdrn.models import Preprocess, classify, with_preprocess
from tests.examples._images import network, write_image


@pytest.fixture
def run(examples, main, capsys):
    """Runs the script; returns what it prints, or raises the text of its error."""

    def on(*arguments):
        main(importlib.import_module("predict"), *arguments)
        return capsys.readouterr().out

    return on


@pytest.fixture
def known(tmp_path):
    model = with_preprocess(network(), Preprocess(["dark", "bright"], 12))
    model.save(tmp_path / "known.keras")
    return model


def told(path, answer):
    name, share = answer.top[0]
    return f"{path}: {name} {100 * share:.1f} %, "


def test_files_of_all_kinds(run, known, tmp_path):
    paths = [
        write_image(tmp_path / "one.png", (40, 9), 20),
        write_image(tmp_path / "one.jpg", (16, 16), 150),
        write_image(tmp_path / "gray.png", (5, 30), 90, channels=1),
    ]
    lines = run("known.keras", *paths).splitlines()
    for path, line, answer in zip(paths, lines, classify(known, paths), strict=True):
        assert line.startswith(told(path, answer))
        assert line.endswith(("σ₀ = 0.70", "σ₀ = 1.41", "σ₀ = 0.7", "σ₀ = 1.4"))
    answers = classify(known, paths[:1], object_size=30)
    line = run("known.keras", paths[0], "--object-size", 30)
    assert line.startswith(told(paths[0], answers[0]))


def test_names_and_size_can_be_options(run, known, tmp_path):
    network().save(tmp_path / "plain.keras")
    path = write_image(tmp_path / "one.png", (20, 20), 150)
    options = ("--side", 12, "--classes", "dark", "bright")
    assert run("plain.keras", path, *options) == run("known.keras", path)


def test_the_other_files_go_on(run, known, tmp_path, capsys):
    (tmp_path / "text.png").write_text("no image")
    good = [write_image(tmp_path / f"{n}.png") for n in (1, 2)]
    with pytest.raises(SystemExit) as stopped:
        run("known.keras", tmp_path / "none.png", good[0], "text.png", good[1])
    errors = str(stopped.value).splitlines()
    assert errors[0].startswith(f"error: {tmp_path / 'none.png'} cannot be read")
    assert errors[1].startswith("text.png cannot be read") and len(errors) == 2
    printed = capsys.readouterr().out.splitlines()
    assert [line.split(":")[0] for line in printed] == list(map(str, good))


def test_names_that_are_not_in_utf8(run, known, tmp_path):
    path = write_image(tmp_path / os.fsdecode(b"a\xff.png"))
    assert r"a\udcff.png: " in run("known.keras", path)


def test_a_file_that_brings_code_is_refused(run, tmp_path):
    image = keras.Input((16, 16, 3))
    x = keras.layers.Lambda(lambda x: x[:, 0, 0])(image)
    keras.Model(image, x).save(tmp_path / "code.keras")
    with pytest.raises(SystemExit, match=r"`?Lambda`? layer"):
        run("code.keras", write_image(tmp_path / "one.png"))


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("none.keras", "one.png"), "no trained network 'none.keras'"),
        (("plain.keras", "one.png"), "must apply one `Preprocess`"),
        (("known.keras", "one.png", "--side", 9, "--classes", "a"), "a name for each"),
    ],
)
def test_refused(run, known, tmp_path, arguments, message):
    network().save(tmp_path / "plain.keras")
    write_image(tmp_path / "one.png")
    with pytest.raises(SystemExit, match=f"error: .*{message}"):
        run(*arguments)
