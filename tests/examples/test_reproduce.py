"""`reproduce.py`: runs, resumes, refuses, draws; and the tables of several runs."""

import contextlib
import functools
import json
import re
from unittest import mock

import keras
import numpy as np
import pytest

from keras_gdrn.data import SIZE_FACTORS, rescaled_arrays
from keras_gdrn.training import Recipe, Stage, lock_folder, train_in_stages
from tests import without
from tests._commands import ROOT, modules_of
from tests.data.h5_layouts import write, write_folder

with modules_of(ROOT / "examples" / "paper"):  # so that names can be parameters
    from budgets import with_network, within
    from experiments import EXPERIMENTS

pytestmark = pytest.mark.filterwarnings("ignore:The structure of `inputs` doesn't")
SMOKE = ("--budget", "smoke")
PRETRAINED = "stl10_max_pretrained"


@pytest.fixture
def module(paper):
    return paper("reproduce")


@pytest.fixture
def reproduce(module, main):
    return functools.partial(main, module)


@contextlib.contextmanager
def first_stage_alone(paper):
    """Training that is interrupted after its first stage."""

    def interrupted(model, stages, *data, **options):
        train_in_stages(model, stages[:1], *data, **options)
        raise KeyboardInterrupt

    with mock.patch.object(paper("run"), "train_in_stages", interrupted):
        yield


@pytest.mark.slow
@pytest.mark.parametrize("name", ["stl10_max_pretrained", "cifar10_plain"])
def test_a_run_and_its_table(name, module, reproduce, paper, tmp_path, monkeypatch):
    """In parts, if it has several stages; with more scales in the test."""
    experiment = within(EXPERIMENTS[name], "smoke")
    out = tmp_path / f"runs/{name}-smoke"
    if len(experiment.stages) > 1:
        with first_stage_alone(paper), pytest.raises(KeyboardInterrupt):
            reproduce(name, *SMOKE)
        assert (out / "first_stage/log.csv").exists()
        assert not (out / "results.md").exists()
    reproduce(name, *SMOKE)
    results = json.loads((out / "results.json").read_text(encoding="utf-8"))
    accuracies = np.array(list(results["accuracies"].values()))
    assert accuracies.shape == (len(experiment.stages), len(experiment.factors))
    assert np.all((accuracies >= 0) & (accuracies <= 1))
    pictures = {"scale_generalization.png"}
    if not experiment.plain:
        pictures |= {"scale_selection.png"}
        np.testing.assert_allclose(np.sum(results["scale_selection"], axis=1), 1)
        sigma0 = experiment.test_sigma0 or experiment.stages[-1].sigma0
        assert results["sigma0"] == pytest.approx(sigma0)
    assert {path.name for path in out.glob("*.png")} == pictures
    assert keras.saving.load_model(out / "model.keras").output_shape == (None, 10)
    module.run = None  # nothing is run again
    assert "This run is complete" in reproduce(name, *SMOKE)
    with pytest.raises(SystemExit, match="seed: 0, now 5"):
        reproduce(name, *SMOKE, "--seed", 5)
    printed = reproduce("--collect", f"runs/{name}-smoke", "--out", "curves.png")
    assert f"reproduce.py {name} --budget smoke" in printed
    assert f"Keras {keras.__version__}" in printed
    assert (tmp_path / "curves.png").stat().st_size > 1000


def test_how_long_a_stage_takes_is_told_once(paper, monkeypatch, capsys):
    module, hours = paper("run"), paper("run").Hours()
    now = iter([100.0, 110.0])
    monkeypatch.setattr(module.time, "perf_counter", lambda: next(now))
    hours.set_params({"epochs": 3, "steps": 600})
    hours.on_train_begin()
    for epoch in (1, 2):  # after an interruption
        hours.on_epoch_begin(epoch)
        for batch in range(12):
            hours.on_train_batch_begin(batch)
    assert capsys.readouterr().out == "Epochs to go: 2, about 0.7 h\n"


@pytest.mark.slow
def test_every_network_can_be_built(paper):
    smokes = (within(experiment, "smoke") for experiment in EXPERIMENTS.values())
    alike = {"scale_pooling": "max", "scale_dropout": 0.0, "epsilon": 1e-3}
    kinds = {of.network: of for of in (with_network(s, **alike) for s in smokes)}
    assert len(kinds) > 10
    for network, experiment in kinds.items():
        model = paper("run").network(experiment, network.sigma0[:1], seed=0)
        assert model.output_shape == (None, network.classes)


@pytest.mark.parametrize(("extent", "expected"), [("3", 3.0), ("whole", None)])
def test_options_replace_what_the_budget_says(
    extent, expected, module, reproduce, tmp_path, monkeypatch
):
    module.run = mock.Mock()
    monkeypatch.setattr(module.Source, "look_up", lambda *_: "")
    # The estimate is cached by network.
    monkeypatch.setattr(module, "cost", lambda of: f"{hash(of.network) % 9} h here")
    others = "--head-initializer he_uniform --density pixels --canvas 28 --widths 4 6 6"
    others += " --batch-size 5 --epochs 3 2"
    command = f"mnist --out run --receptive-field {extent} {others}"
    reproduce(*command.split())
    experiment = module.run.call_args.args[1]
    recipes = [stage.recipe for stage in experiment.stages]
    assert {recipe.batch_size for recipe in recipes} == {5}
    assert [recipe.epochs for recipe in recipes] == [3, 2]
    network = json.loads(json.dumps(vars(experiment.network)))
    wanted = {"receptive_field": expected, "head_initializer": "he_uniform"}
    wanted |= {"density": None, "input_shape": [28, 28, 1], "widths": [4, 6, 6]}
    assert wanted.items() <= network.items()
    settings = json.loads((tmp_path / "run/settings.json").read_text("utf-8"))
    assert settings["network"] == network


def test_what_decides_the_result_is_in_the_settings(paper):
    settings, one = paper("reproduce").settings, EXPERIMENTS["digits_max"]
    other = type(one)(**{**vars(one), "what": "in words"})
    same = settings(one, 0, "")
    assert same == settings(other, 0, "")
    others = [settings(one, 1, ""), settings(one, 0, ["a.h5"])]
    others += [settings(EXPERIMENTS["digits_jointly"], 0, "")]
    keras.config.set_dtype_policy("mixed_bfloat16")
    assert same not in [*others, settings(one, 0, "")]


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ("--figure poolings --start-from a", "--start-from needs a NAME"),
        ("--figure poolings --epochs 2", "--epochs needs a NAME"),
        (f"{PRETRAINED} --budget smoke --epochs 2", "first_stage and .*Received: 2"),
        ("digits_max --receptive-field nan", "argument --receptive-field"),
        ("digits_max --budget smoke --canvas 1", r"for an image of \(1, 1\) pixels"),
        ("--collect nope nor", "no results.json in nope, nor"),
    ],
)
def test_what_cannot_be_run_leaves_nothing_behind(
    arguments, message, command, tmp_path, monkeypatch
):
    monkeypatch.chdir(tmp_path)
    done = command("examples/paper/reproduce.py", *arguments.split())
    assert done.returncode and re.search(message, done.stderr)
    assert not [path for path in tmp_path.rglob("*") if path.is_file()]


def test_a_run_is_in_one_process(reproduce, tmp_path):
    with lock_folder(tmp_path / "e"), pytest.raises(SystemExit, match="e is in use by"):
        reproduce("digits_max", *SMOKE, "--out", "e")


def test_a_stage_that_is_there_is_not_taken_over(paper, tmp_path):
    (tmp_path / "other" / "a").mkdir(parents=True)
    (tmp_path / "other" / "a" / "weights").write_text("of the other run")
    (tmp_path / "begun" / "a").mkdir(parents=True)
    (tmp_path / "new" / "partial-a" / "b").mkdir(parents=True)  # interrupted
    for out, taken in (("new", ["weights"]), ("begun", [])):
        stage = Stage("a", Recipe(1, 2), None)
        paper("run").take_over(stage, tmp_path / "other", tmp_path / out)
        assert [file.name for file in (tmp_path / out / "a").iterdir()] == taken


@pytest.mark.parametrize("name", ["stl10_average", "digits_max"])
@pytest.mark.parametrize("scales", [1, 12])
def test_maps_of_a_test_fit_the_memory(paper, name, scales):
    run, of = paper("run"), EXPERIMENTS[name]
    batch, side = run.test_batch(of, scales), run.test_side(of)
    one = 4 * scales * side**2 * max(of.network.widths)
    assert batch == 1 or batch * one <= run.MAP_BYTES
    # And as many as that allows.
    assert batch == run.TEST_BATCH or (batch + 1) * one > run.MAP_BYTES


@pytest.fixture(scope="module")
def files(tmp_path_factory):
    """Digits in the layout of the authors' files, up to 255, on a canvas of 40x40."""
    folder = tmp_path_factory.mktemp("files")
    return write_folder(folder, (*SIZE_FACTORS[:2], 1.0), batch_axis=False)


@pytest.mark.slow
@pytest.mark.parametrize("from_files", [True, False])
def test_goes_on_where_there_is_no_tensorflow(
    reproduce, paper, tmp_path, files, from_files
):
    """Begun on any backend. The record names both machines."""
    images = ("--h5", files) if from_files else ()
    command = "cifar10_max_pretrained", *SMOKE, *images, "--out", tmp_path
    with first_stage_alone(paper), pytest.raises(KeyboardInterrupt):
        reproduce(*command)
    log = tmp_path / "first_stage/log.csv"
    first = log.read_bytes()
    without.run(without.TENSORFLOW, "examples/paper/reproduce.py", *command)
    record = json.loads((tmp_path / "results.json").read_text(encoding="utf-8"))
    assert log.read_bytes() == first  # which was not trained again
    before, now = record["environments"]
    assert before["backend"] == keras.backend.backend()
    assert now == record["environment"] and now["backend"] == "jax"
    assert "tensorflow" not in now
    table = (tmp_path / "results.md").read_text(encoding="utf-8")
    assert f"Keras {now['keras']} on jax, begun on {before['cores']} cores" in table


@pytest.mark.slow
def test_a_figure_is_drawn_from_runs_of_its_own(
    module, reproduce, paper, tmp_path, files
):
    """Interrupted, it goes on; what its runs share is trained once."""
    runs, figures = ("cifar10_max", "cifar10_max_dense"), module.FIGURES
    small = type(figures["dense"])("a part of A.5", {"cifar10": runs}, runs[1:])
    figures["small"] = small
    first, second = (tmp_path / f"{run}-smoke" for run in runs)
    command = ("--figure", "small", *SMOKE, "--h5", files, "--out", ".")
    with first_stage_alone(paper), pytest.raises(KeyboardInterrupt):
        reproduce(*command)
    assert first.exists() and not second.exists()
    assert f"{runs[0]}, in {runs[0]}-smoke" in reproduce(*command)
    assert (tmp_path / "small-smoke.png").stat().st_size > 10_000
    table = (tmp_path / "small-smoke.md").read_text(encoding="utf-8")
    assert all(f"| {run.replace('_', ' ')} " in table for run in runs)
    logs = [run / "training/log.csv" for run in (first, second)]
    assert logs[0].read_bytes() == logs[1].read_bytes()
    text = (first / "results.json").read_text(encoding="utf-8")
    assert json.loads(text)["factors"] == list(SIZE_FACTORS[:2])
    module.run = None  # nothing is run again
    reproduce(*command)
    other = write_folder(tmp_path, SIZE_FACTORS[:2], batch_axis=False, dtype="uint8")
    with pytest.raises(SystemExit, match="images"):  # of other files
        reproduce(runs[0], *SMOKE, "--h5", other, "--out", first)


@pytest.mark.parametrize(
    ("dataset", "split", "shape", "message"),
    [
        ("cifar10", "train", (96, 96, 3), "64x64x3.*train, 96x96x3"),
        ("cifar10", "train", (64, 64, 1), "64x64x3.*64x64x1"),
        ("cifar10", "train", (64, 48, 3), "64x64x3.*64x48x3"),
        ("digits", "train", (36, 36, 1), "digits: 40x40x1.*36x36x1"),
        ("mnist", "train", (112, 112, 1), None),
        ("cifar10", "train", (64, 64, 3), None),
        # Test images of STL-10 are larger than those of the training.
        ("stl10", "train", (192, 192, 3), "96x96x3.*train, 192x192x3"),
        ("stl10", "train", (96, 96, 3), None),
        ("stl10", "test", (96, 96, 3), "192x192x3.*test, 96x96x3"),
        ("stl10", "test", (192, 192, 3), None),
    ],
)
def test_files_of_other_images(paper, tmp_path, dataset, split, shape, message):
    arrays = {f"x_{split}": np.zeros((12, *shape), "uint8")}
    write(
        tmp_path / "a_sctr1p000_scte1p000.h5", **arrays, **{f"y_{split}": np.arange(12)}
    )
    source = paper("images").Source(h5=tmp_path)
    if message is None:
        assert source.data(dataset, split)[0].shape == (12, *shape)
        return
    with pytest.raises(ValueError, match=rf"scte1p000\.h5 must have .*{message}"):
        source.data(dataset, split)


TEST = {"x_test": np.zeros((3, 40, 40, 1)), "y_test": [0, 1, 2]}
TRAIN = {"x_train": TEST["x_test"], "y_train": TEST["y_test"]}
NONE = r"one HDF5 file in .* must have .* 'test' at size factor 1.0. Received: \[\]"


@pytest.mark.parametrize(
    ("names", "arrays", "split", "expected"),
    [
        ("a_scte1p000 b_scte0p500 .c_scte1p000", TEST, "test", "a_scte1p000"),
        ("a b_sctr2p000", TRAIN, "train", "a"),
        ("a_sctr1p000_scte1p000", TEST | TRAIN, "test", "a_sctr1p000_scte1p000"),
        ("a a_scte0p500 b_scte1p000-4p000", TEST, "test", NONE),
        ("a_scte1p000", TRAIN, "test", NONE),
        ("a_scte1p000 b_scte1p000", TEST, "test", "one HDF5 file .*'test'.*a_.*b_"),
    ],
)
def test_the_name_of_a_file_states_its_size_factor(
    paper, tmp_path, names, arrays, split, expected
):
    for name in names.split():
        write(tmp_path / f"{name}.h5", **arrays)
    if expected in names:
        assert paper("images").file_of(tmp_path, split, 1.0).stem == expected
        return
    with pytest.raises(FileNotFoundError, match=expected):
        paper("images").file_of(tmp_path, split, 1.0)


def test_splits_of_files_follow_each_other_and_their_middle_is_taken(paper, files):
    source, options = paper("images").Source(h5=files), {"canvas": (24, 20)}
    images, labels = source.data("digits", "train+validation", **options)
    expected = rescaled_arrays("digits", "train", **options, limit=40)
    np.testing.assert_allclose(images[:40], expected[0], atol=1e-6)
    np.testing.assert_array_equal(labels, [*expected[1], *expected[1][:12]])
    assert len(source.data("digits", "train+validation", limit=41)[1]) == 41
    # The test set alone in its file comes before the 20 images beside the training.
    batches = [*source.batches("digits", "test", batch_size=25)]
    assert [len(labels) for _, labels in batches] == [25, 5]


def test_files_of_other_data_sets_do_not_make_a_run_another(paper, tmp_path):
    source = paper("images").Source(h5=tmp_path)
    for of in ("digits", "mnist"):
        (tmp_path / of).mkdir()
        write(tmp_path / of / f"of_{of}.h5", **TEST)
    size = (tmp_path / "digits/of_digits.h5").stat().st_size
    assert source.look_up("digits", []) == [f"of_digits.h5, {size} bytes"]
    write(tmp_path / "digits/more.h5", **TEST)
    assert len(source.look_up("digits", [])) == 2
    assert source.look_up("cifar10", []) == []  # nor of the folders beside it


def test_all_images_are_looked_up_before_training(
    module, reproduce, tmp_path, files, monkeypatch
):
    short = tmp_path / "files"
    short.mkdir()
    for file in files.iterdir():
        if "scte0p595" not in file.name:
            (short / file.name).symlink_to(file)
    (tmp_path / "all/digits").mkdir(parents=True)  # with a subfolder for each data set
    module.run = None
    for folder, message in (
        (short, r"'test' at size factor 0\.59"),
        ("all", r"one HDF5 file in all/digits"),
    ):
        with pytest.raises(SystemExit, match=message):
            reproduce("digits_max", *SMOKE, "--h5", folder)

    def look_up(_, dataset, parts):
        if dataset == "stl10":
            raise FileNotFoundError("no STL-10")

    monkeypatch.setattr(module.Source, "look_up", look_up)
    with pytest.raises(SystemExit, match="no STL-10"):  # of the last run of a figure
        reproduce("--figure", "single")


def test_images_are_downloaded_where_they_are_asked_for(paper, monkeypatch):
    rescaled = mock.Mock()
    monkeypatch.setattr(paper("images"), "rescaled", rescaled)
    paper("images").Source("here", True).data("cifar10", "test", canvas=64)
    where = {"data_dir": "here", "download": True}
    rescaled.assert_called_once_with("cifar10", "test", 1.0, **where, canvas=64)


def record(accuracies, first_stage, **changes):
    stages = {"one, first_stage": first_stage, "one": accuracies}
    found = {"name": "one", "factors": [0.5, 1.0, 2.0], "accuracies": stages}
    return {**found, "seed": 0, "experiment": {}, "policy": "float32", **changes}


def test_a_stage_that_runs_share_comes_once(paper):
    shared, own, *others = np.random.default_rng(0).random((5, 3)).tolist()
    stages = {"one": shared, "two": shared, "other/one": own}
    runs = {n: record(x, stages[n]) for n, x in zip(stages, others, strict=True)}
    names = ["one, first_stage", "one", "two", "other/one, first_stage", "other/one"]
    assert list(paper("records").curves(runs)) == names


def test_seeds_are_put_together(paper):
    runs = {
        "a0": record([0.5, 0.9, 0.7], [0.5] * 3),
        "a1": record([0.7, 0.9, 0.5], [0.5] * 3, seed=1),
        "b": record([0.8] * 3, [0.6] * 3, experiment={"widths": [8]}),
    }
    rows = re.findall(r"^\| (one.*)", paper("records").over_seeds(runs), re.M)
    ends = f"60.0 ±\xa0{np.std([50, 70], ddof=1):.1f}"
    assert [re.sub("[| ]+", " ", row).strip() for row in rows] == [
        "one, first stage (a0, …) 2" + 4 * " 50.0 ±\xa00.0",
        f"one (a0, …) 2 {ends} 90.0 ±\xa00.0 {ends} 70.0 ±\xa00.0",
        "one, first stage (b, …) 1" + 4 * " 60.0",
        "one (b, …) 1" + 4 * " 80.0",
    ]
