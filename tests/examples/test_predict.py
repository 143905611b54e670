"""The answers of predict.py are those of `classify`, and one bad file is one error."""

import os

import keras
import pytest

from keras_gdrn.models import Preprocess, classify, gauss_der_resnet, with_preprocess
from tests.examples._images import write_image
from tests.layers._contract import randomize


@pytest.fixture
def known(tmp_path):
    """`known.keras`; `plain.keras` is the same but for what it knows of images."""
    options = {"order": 1, "spatial_selection": "max"}
    plain = gauss_der_resnet((16, 16, 3), 2, [4], 1.5, [0.7, 1.4], **options)
    randomize(plain)  # scores are positive:
    plain.get_layer("scale_channels").network.get_layer("head").bias.assign([3.0, 4.0])
    plain.save(tmp_path / "plain.keras")
    model = with_preprocess(plain, Preprocess(["dark", "bright"], 12))
    model.save(tmp_path / "known.keras")
    return model


@pytest.fixture
def run(script, main, known):
    return lambda *arguments: main(script("predict"), *arguments)


def test_files_of_all_kinds(run, known, tmp_path):
    paths = [
        write_image(tmp_path / "one.png", (40, 9, 3), 20),
        write_image(tmp_path / "one.jpg", (16, 16, 3), 150),
        write_image(tmp_path / "gray.png", (5, 30), 90),
        write_image(tmp_path / os.fsdecode(b"a\xff.png")),  # a name not in UTF-8
    ]
    for size, options in {None: (), 30: ("--object-size", 30)}.items():
        lines = run("known.keras", *paths, *options).splitlines()
        answers = classify(known, paths, object_size=size)
        for path, line, answer in zip(paths, lines, answers, strict=True):
            name, share = answer.top[0]
            shown = str(path).replace("\udcff", r"\udcff")
            assert line.startswith(f"{shown}: {name} {100 * share:.1f} %, ")
            assert line.endswith(("σ₀ = 0.70", "σ₀ = 1.41", "σ₀ = 0.7", "σ₀ = 1.4"))


def test_names_and_size_can_be_options(run, tmp_path):
    path = write_image(tmp_path / "one.png", value=150)
    options = ("--side", 12, "--classes", "dark", "bright")
    assert run("plain.keras", path, *options) == run("known.keras", path)


def test_the_other_files_go_on(run, tmp_path, capsys):
    (tmp_path / "text.png").write_text("no image")
    good = [write_image(tmp_path / f"{n}.png") for n in (1, 2)]
    with pytest.raises(SystemExit) as stopped:
        run("known.keras", tmp_path / "none.png", good[0], "text.png", good[1])
    errors = str(stopped.value).splitlines()
    assert errors[0].startswith(f"error: {tmp_path / 'none.png'} cannot be read")
    assert errors[1].startswith("text.png cannot be read") and len(errors) == 2
    printed = capsys.readouterr().out.splitlines()
    assert [line.split(":")[0] for line in printed] == list(map(str, good))


@pytest.mark.parametrize(
    ("network", "options", "message"),
    [
        ("none.keras", (), "no trained network 'none.keras'"),
        ("plain.keras", (), "must apply one `Preprocess`"),
        ("known.keras", ("--side", 9, "--classes", "a"), "a name for each"),
        ("code.keras", (), "`?Lambda`? layer"),  # the file of a network brings no code
    ],
)
def test_refused(run, tmp_path, network, options, message):
    image = keras.Input((16, 16, 3))
    x = keras.layers.Lambda(lambda x: x[:, 0, 0])(image)
    keras.Model(image, x).save(tmp_path / "code.keras")
    write_image(tmp_path / "one.png")
    with pytest.raises(SystemExit, match=f"error: .*{message}"):
        run(network, "one.png", *options)
