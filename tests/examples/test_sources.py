"""Where images come from: TensorFlow Datasets, with a download, or HDF5 files."""

import json
import sys
from pathlib import Path

import numpy as np
import pytest
import tensorflow as tf

from keras_gdrn.data import SIZE_FACTORS, rescaled_arrays
from tests.data.h5_layouts import write, write_folder

# Those that the budget `smoke` tests at.
FACTORS = SIZE_FACTORS[:2]


@pytest.fixture
def sources(examples):
    import sources

    return sources


@pytest.fixture(scope="module")
def files(tmp_path_factory):
    """Digits in the layout of the authors' files, up to 255, on a canvas of 40x40."""
    folder = tmp_path_factory.mktemp("files")
    return write_folder(folder, (*FACTORS, 1.0), batch_axis=False)


@pytest.fixture
def reproduce(examples, files, monkeypatch):
    """`reproduce.py --budget smoke` with HDF5 files."""
    import reproduce
    import sources

    def none(*_, **__):
        raise AssertionError("not from the files")

    monkeypatch.setattr(sources, "rescaled", none)
    monkeypatch.setattr(sources, "rescaled_arrays", none)

    def run(*options, h5=f"digits={files}"):
        command = ["reproduce.py", "--budget", "smoke", "--h5", h5]
        monkeypatch.setattr(sys, "argv", [*command, *map(str, options)])
        reproduce.main()

    return run


@pytest.mark.parametrize("canvas", [None, (24, 20)])
def test_files_have_what_is_computed(sources, files, canvas):
    source = sources.Source(h5={"digits": files})
    options = {"canvas": canvas, "limit": 25}
    expected = rescaled_arrays("digits", "test", FACTORS[1], **options)
    for found, wanted in zip(
        source.arrays("digits", "test", FACTORS[1], **options), expected, strict=True
    ):
        np.testing.assert_allclose(found, wanted, atol=1e-6)
    data = source.batches("digits", "train", batch_size=10, canvas=canvas)
    assert data.cardinality() == 4
    assert data.element_spec[0].shape == (None, *(canvas or (40, 40)), 1)


def images(shape, classes, key="train", count=12):
    labels = np.arange(count) % classes
    return {f"x_{key}": np.zeros((count, *shape), "uint8"), f"y_{key}": labels}


@pytest.mark.parametrize(
    ("dataset", "name", "shape", "classes", "message"),
    [
        ("cifar10", "stl10", (96, 96, 3), 10, "train of stl10, 96x96x3"),
        ("cifar10", "mine", (96, 96, 3), 10, "64x64x3, .*train of cifar10, 96x96x3"),
        ("cifar10", "mine", (64, 64, 1), 10, "64x64x3, .*64x64x1"),
        ("cifar10", "cifar100", (64, 64, 3), 12, "10 classes.*12 classes"),
        ("cifar10", "mine", (64, 64, 3), 2, "10 classes.*2 classes"),
        ("mnist", "fashion-MNIST", (72, 72, 1), 10, "mnist: .*of fashion_mnist"),
        ("fashion_mnist", "mnist_large_scale", (112, 112, 1), 10, "train of mnist"),
        ("stl10_original", "stl10", (96, 96, 3), 10, "train of stl10"),
        ("digits", "mine", (36, 36, 1), 10, "digits: 40x40x1, .*36x36x1"),
    ],
)
def test_files_of_other_images(
    sources, tmp_path, dataset, name, shape, classes, message
):
    write(tmp_path / f"{name}_tr12_sctr1p000.h5", **images(shape, classes))
    for folder in ("", dataset):
        with pytest.raises(ValueError, match=rf"sctr1p000\.h5 must have .*{message}"):
            sources.Source(h5={folder: tmp_path}).batches(dataset, "train")


@pytest.mark.parametrize(
    ("dataset", "name", "side", "classes"),
    [
        *(
            ("mnist", "mnist_large_scale", 112, 10),
            ("stl10", "Rescaled-STL-10", 192, 7),
        ),
        *(("cifar10", "rescaled_cifar-10", 64, 10), ("cifar10", "mine", 64, 10)),
    ],
)
def test_files_that_fit(sources, tmp_path, dataset, name, side, classes):
    shape = (side, side, 1 if dataset == "mnist" else 3)
    write(tmp_path / f"{name}_te12_scte1p000.h5", **images(shape, classes, "test"))
    data = sources.Source(h5={"": tmp_path}).batches(dataset, "test")
    assert data.element_spec[0].shape == shape


def test_each_data_set_has_its_folder(sources, files):
    source = sources.Source(h5={"digits": files, "stl10": files})
    with pytest.raises(
        ValueError, match=r"folder of cifar10.* Received: digits=.*stl10="
    ):
        source.batches("cifar10", "train")


def test_folders_are_told_by_the_command(reproduce, tmp_path, capsys):
    with pytest.raises(SystemExit):
        reproduce("digits_max", h5="cifar=here")
    assert "'cifar' is none of fashion_mnist, cifar10" in capsys.readouterr().err


def test_all_images_are_looked_up_before_training(reproduce, tmp_path, files, capsys):
    short = tmp_path / "files"
    short.mkdir()
    for file in list(files.iterdir()):
        if "scte0p595" not in file.name:
            (short / file.name).symlink_to(file)
    for what in (("digits_max",), ("--figure", "single_cifar10")):
        with pytest.raises(SystemExit, match=r"'test' at size factor 0\.59"):
            reproduce(*what, "--out", tmp_path / "out", h5=str(short))
    assert "Epoch" not in capsys.readouterr().out


def test_other_files_are_another_run(reproduce, tmp_path, files, monkeypatch):
    monkeypatch.setattr(sys.modules["reproduce"], "run", lambda *_: None)
    out = tmp_path / "out"
    for h5 in (files, f"digits={files}"):
        reproduce("digits_max", "--out", out, h5=str(h5))
    settings = json.loads((out / "settings.json").read_text(encoding="utf-8"))
    assert [part[:4] for part in settings["images"]] == ["trai", "test", "test"]
    other = write_folder(Path(tmp_path), FACTORS, batch_axis=False, white=1)
    with pytest.raises(SystemExit, match="images"):
        reproduce("digits_max", "--out", out, h5=str(other))


def test_downloads_where_it_is_told_to(sources, monkeypatch):
    asked = []
    for name in ("rescaled", "rescaled_arrays"):
        monkeypatch.setattr(sources, name, lambda *_, **given: asked.append(given))
    source = sources.Source(data_dir="here", download=True)
    source.batches("cifar10", "test", batch_size=2)
    source.arrays("cifar10", "test", limit=2)
    assert all(given["download"] and given["data_dir"] == "here" for given in asked)
    assert len(asked) == 2


@pytest.mark.parametrize(
    "script", ["reproduce", "evaluate", "show_datasets", "make_rescaled"]
)
def test_each_command_can_download(script, examples, monkeypatch, capsys):
    module = __import__(script)
    monkeypatch.setattr(sys, "argv", [script, "--help"])
    with pytest.raises(SystemExit):
        module.main()
    assert "--download" in capsys.readouterr().out


def test_command_that_says_what_files_hold(examples, files, monkeypatch, capsys):
    import h5_report

    monkeypatch.setattr(sys, "argv", ["h5_report.py", str(files)])
    h5_report.main()
    found = capsys.readouterr().out
    assert "x_train: 40 images 40x40x1, float32 to 255, divided by it" in found
    monkeypatch.setattr(sys, "argv", ["h5_report.py", str(files / "none")])
    with pytest.raises(SystemExit, match=r"error: .*none"):
        h5_report.main()


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore:Even though the .*run_functions_eagerly")
@pytest.mark.filterwarnings("ignore:The structure of `inputs` doesn't match")
def test_from_files_to_a_figure(reproduce, tmp_path):
    tf.config.run_functions_eagerly(True)
    try:
        reproduce("--figure", "single_cifar10", "--out", tmp_path)
    finally:
        tf.config.run_functions_eagerly(False)
    run = tmp_path / "cifar10_single-smoke"
    results = json.loads((run / "results.json").read_text(encoding="utf-8"))
    assert results["factors"] == list(FACTORS)
    assert (tmp_path / "single_cifar10-smoke.png").stat().st_size > 10_000
