"""Where images come from: TensorFlow Datasets, with a download, or HDF5 files."""

import json
import sys

import numpy as np
import pytest
import tensorflow as tf

from keras_gdrn.data import SIZE_FACTORS, rescaled_arrays, write_h5

# Those that the budget `smoke` tests at.
FACTORS = SIZE_FACTORS[:2]


@pytest.fixture
def sources(examples):
    import sources

    return sources


@pytest.fixture(scope="module")
def files(tmp_path_factory):
    """The digits at three sizes, on a canvas of 40x40."""
    folder = tmp_path_factory.mktemp("files")
    write_h5(folder, "digits", ("train",), limit=40)
    for factor in FACTORS:
        write_h5(folder, "digits", ("test",), factor, limit=30)
    return folder


@pytest.mark.parametrize("canvas", [None, (24, 20)])
def test_files_have_what_is_computed(sources, files, canvas):
    source = sources.Source(h5=files)
    options = {"canvas": canvas, "limit": 25}
    expected = rescaled_arrays("digits", "test", FACTORS[1], **options)
    for found, wanted in zip(
        source.arrays("digits", "test", FACTORS[1], **options), expected, strict=True
    ):
        np.testing.assert_allclose(found, wanted, atol=1e-6)
    data = source.batches("digits", "train", batch_size=10, canvas=canvas)
    assert data.cardinality() == 4
    assert data.element_spec[0].shape == (None, *(canvas or (40, 40)), 1)


@pytest.mark.parametrize(
    ("dataset", "canvas", "message"),
    [
        ("digits", (64, 64), "at least 64x64 pixels.*Received: 40x40"),
        ("cifar10", None, r"cifar10 have 3 channel\(s\).*images of 1"),
    ],
)
def test_files_that_do_not_fit(sources, files, dataset, canvas, message):
    with pytest.raises(ValueError, match=message):
        sources.Source(h5=files).batches(dataset, "train", canvas=canvas)


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
    assert "x_train: 40 images 40x40x1" in found and "size factor 0.5" in found
    monkeypatch.setattr(sys, "argv", ["h5_report.py", str(files / "none")])
    with pytest.raises(SystemExit, match=r"error: .*none"):
        h5_report.main()


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore:Even though the .*run_functions_eagerly")
@pytest.mark.filterwarnings("ignore:The structure of `inputs` doesn't match")
def test_an_experiment_on_files(examples, files, tmp_path, monkeypatch):
    import reproduce
    import sources

    def none(*_, **__):
        raise AssertionError("not from the files")

    monkeypatch.setattr(sources, "rescaled", none)
    monkeypatch.setattr(sources, "rescaled_arrays", none)
    command = ["reproduce.py", "digits_max", "--budget", "smoke", "--h5", str(files)]
    monkeypatch.setattr(sys, "argv", [*command, "--out", str(tmp_path)])
    tf.config.run_functions_eagerly(True)
    try:
        reproduce.main()
    finally:
        tf.config.run_functions_eagerly(False)
    results = json.loads((tmp_path / "results.json").read_text(encoding="utf-8"))
    assert results["factors"] == list(FACTORS)
