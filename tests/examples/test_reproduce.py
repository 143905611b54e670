"""`reproduce.py`: runs, resumes, refuses, draws; and the tables of several runs."""

import json
import types

import keras
import numpy as np
import pytest

from keras_gdrn.data import SIZE_FACTORS, rescaled_arrays
from keras_gdrn.training import Recipe, Stage, lock_folder
from tests._commands import ROOT, modules_of
from tests.data.h5_layouts import write, write_folder

with modules_of(ROOT / "examples" / "paper"):  # so that names can be parameters
    from budgets import with_network, within
    from experiments import EXPERIMENTS

pytestmark = pytest.mark.filterwarnings("ignore:The structure of `inputs` doesn't")
SMOKE = ("--budget", "smoke")


@pytest.fixture
def reproduce(paper, main):
    """Runs the command; `.instead(function)` runs a function and not the training."""
    module = paper("reproduce")

    def run(*arguments):
        return main(module, *arguments)

    def instead(function):
        module.run = function

    return types.SimpleNamespace(run=run, instead=instead, module=module)


def record(name, accuracies, first_stage=None, **changes):
    stages = {f"{name}, first_stage": first_stage} if first_stage else {}
    environment = {"cores": 2, "processor": "one", "gpus": [], "keras": "3"}
    return {
        "name": name,
        "experiment": {},
        "factors": [0.5, 1.0, 2.0],
        "accuracies": {**stages, name: accuracies},
        "environment": {**environment, "backend": "tensorflow"},
        "seconds": {"first_stage": 60, "in all": 90},
        "command": f"python reproduce.py {name}",
        "seed": 0,
        "date": "2026-11-21",
        "parameters": 1000,
        "policy": "float32",
        **changes,
    }


def fake(name, experiment, options):
    """Leaves what a run would leave, after an hour."""
    random = np.random.default_rng(len(name))
    sigma0 = experiment.test_sigma0 or experiment.stages[-1].sigma0
    shares = random.dirichlet(np.ones(len(sigma0)), len(SIZE_FACTORS))
    found = record(name, random.random(9).tolist(), factors=list(SIZE_FACTORS))
    found |= {"sigma0": list(sigma0), "scale_selection": shares.tolist()}
    (options.out / "results.json").write_text(json.dumps(found), encoding="utf-8")
    (options.out / "results.md").write_text("the table", encoding="utf-8")
    options.max_minutes.took(3600.0)


def check_results(out, experiment):
    results = json.loads((out / "results.json").read_text(encoding="utf-8"))
    for accuracies in results["accuracies"].values():
        assert np.all((np.array(accuracies) >= 0) & (np.array(accuracies) <= 1))
    assert len(results["accuracies"]) == len(experiment.stages)
    assert results["environment"]["keras"] == keras.__version__
    pictures = {"scale_generalization"}
    if not experiment.plain:
        pictures |= {"scale_selection"}
        np.testing.assert_allclose(np.sum(results["scale_selection"], axis=1), 1)
        sigma0 = experiment.test_sigma0 or experiment.stages[-1].sigma0
        assert len(results["sigma0"]) == len(sigma0)
    assert {path.stem for path in out.glob("*.png")} == pictures
    assert keras.saving.load_model(out / "model.keras").output_shape == (None, 10)


@pytest.mark.slow
def test_a_run_in_parts_and_its_table(reproduce, tmp_path):
    """In stages, with more scales in the test."""
    name, out = "stl10_max_pretrained", tmp_path / "runs/stl10_max_pretrained-smoke"
    printed = reproduce.run(name, *SMOKE, "--max-minutes", 0)
    assert "Out of time; the same command goes on." in printed
    assert (out / "first_stage/log.csv").exists() and not (out / "results.md").exists()
    reproduce.run(name, *SMOKE)
    check_results(out, within(EXPERIMENTS[name], "smoke"))
    reproduce.instead(None)  # nothing is run again
    assert "This run is complete" in reproduce.run(name, *SMOKE)
    with pytest.raises(SystemExit, match="seed: 0, now 5"):
        reproduce.run(name, *SMOKE, "--seed", 5)
    printed = reproduce.run("--collect", f"runs/{name}-smoke", "--out", "curves.png")
    assert f"reproduce.py {name} --budget smoke" in printed
    assert (tmp_path / "curves.png").stat().st_size > 1000


def test_how_long_a_stage_takes_is_told_once(paper, monkeypatch, capsys):
    module, hours = paper("run"), paper("run").Hours()
    now = iter([100.0, 110.0])
    monkeypatch.setattr(module.time, "perf_counter", lambda: next(now))
    hours.set_params({"epochs": 3, "steps": 600})
    hours.on_train_begin()
    for batch in (*range(12), *range(12)):
        hours.on_train_batch_begin(batch)
    assert capsys.readouterr().out == "3 epochs take about 1.0 h\n"


@pytest.mark.slow
@pytest.mark.parametrize("name", ["cifar10_plain", "digits_separate_statistics"])
def test_controls_and_variants_run(name, reproduce, paper, tmp_path, monkeypatch):
    joint, module = [], paper("run")
    build = module.with_separate_statistics
    monkeypatch.setattr(
        module, "with_separate_statistics", lambda m: joint.append(m) or build(m)
    )
    reproduce.run(name, *SMOKE, "--out", "here")
    check_results(tmp_path / "here", within(EXPERIMENTS[name], "smoke"))
    assert len(joint) == (name == "digits_separate_statistics")


@pytest.mark.slow
def test_every_network_can_be_built(paper):
    smokes = (within(experiment, "smoke") for experiment in EXPERIMENTS.values())
    alike = {"scale_pooling": "max", "scale_dropout": 0.0, "epsilon": 1e-3}
    kinds = {of.network: of for of in (with_network(s, **alike) for s in smokes)}
    assert len(kinds) > 10
    for network, experiment in kinds.items():
        model = paper("run").network(experiment, network.sigma0[:1], seed=0)
        assert model.output_shape == (None, network.classes)


@pytest.mark.parametrize(
    ("option", "field", "expected"),
    [
        ("--receptive-field auto", "receptive_field", "auto"),
        ("--receptive-field 3", "receptive_field", 3.0),
        ("--receptive-field whole", "receptive_field", None),
        ("--head-initializer he_uniform", "head_initializer", "he_uniform"),
        ("--subpixel", "subpixel", True),
        ("--canvas 28", "input_shape", [28, 28, 1]),
        ("--widths 4 6 6", "widths", [4, 6, 6]),
    ],
)
def test_options_replace_what_the_budget_says(
    option, field, expected, reproduce, tmp_path, monkeypatch
):
    ran = []
    reproduce.instead(lambda _, experiment, *__: ran.append(experiment))
    monkeypatch.setattr(reproduce.module.Source, "look_up", lambda *_: "")
    reproduce.run("mnist", "--out", "run", *option.split())
    found = getattr(ran[0].network, field)
    assert (list(found) if isinstance(found, tuple) else found) == expected
    settings = json.loads((tmp_path / "run/settings.json").read_text("utf-8"))
    assert settings["network"][field] == expected


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
        ((), "one of the arguments NAME --list --figure --collect is required"),
        (("mnist", "--figure", "poolings"), "not allowed with argument"),
        (("--figure", "poolings", "--start-from", "a"), "--start-from is for a NAME"),
        (("digits_max", "--receptive-field", "nan"), "argument --receptive-field"),
    ],
)
def test_options_are_checked_at_once(arguments, message, reproduce, tmp_path, capsys):
    with pytest.raises(SystemExit):
        reproduce.run(*arguments)
    assert message in capsys.readouterr().err
    assert not list(tmp_path.iterdir())


def test_what_cannot_be_run_leaves_nothing_behind(reproduce, tmp_path):
    with pytest.raises(SystemExit, match=r"for an image of \(1, 1\) pixels"):
        reproduce.run("digits_max", *SMOKE, "--canvas", 1, "--out", "e")
    with lock_folder(tmp_path / "e"), pytest.raises(SystemExit, match="e is in use by"):
        reproduce.run("digits_max", *SMOKE, "--out", "e")
    assert not list((tmp_path / "e").iterdir())
    with pytest.raises(SystemExit, match=r"no results.json in nope, nor"):
        reproduce.run("--collect", "nope", "nor")


@pytest.mark.parametrize(
    ("scales", "taken"),
    [
        ([(1.0,), (1.0,), (0.7, 1.4)], "ab"),
        ([(0.7, 1.4), (0.7, 1.4)], "a"),
        ([None], "a"),
    ],
)
def test_stages_of_one_channel_are_taken_over(paper, tmp_path, scales, taken):
    stages = [Stage(n, Recipe(1, 2), s) for n, s in zip("abc", scales, strict=False)]
    other, out = tmp_path / "other", tmp_path / "out"
    for stage in stages:
        (other / stage.name).mkdir(parents=True)
        (other / stage.name / "weights").write_text("of the other run")
    (out / "a").mkdir(parents=True)
    paper("run").take_over(stages, other, out)
    assert "".join(sorted(folder.name for folder in out.iterdir())) == taken
    assert not list((out / "a").iterdir())  # what is there is not replaced


@pytest.mark.parametrize("name", ["stl10_average", "digits_max"])
@pytest.mark.parametrize("scales", [1, 12])
def test_maps_of_a_test_fit_the_memory(paper, name, scales):
    run, of = paper("run"), EXPERIMENTS[name]
    batch, side = run.test_batch(of, scales), run.test_side(of)
    one = 4 * scales * side**2 * max(of.network.widths)
    assert batch == 1 or batch * one <= run.MAP_BYTES
    # And as many as that allows.
    assert batch == run.TEST_BATCH or (batch + 1) * one > run.MAP_BYTES


@pytest.mark.parametrize("name", ["dense_cifar10", "zero_order_cifar10"])
def test_a_figure_is_drawn_from_runs_of_its_own(name, reproduce, tmp_path, monkeypatch):
    """As far as time allows; what its runs share is trained once."""
    monkeypatch.setattr(reproduce.module.Source, "look_up", lambda *_: "")
    ran = {}

    def run(experiment, *how):
        ran[experiment] = how[-1].start_from
        fake(experiment, *how)

    reproduce.instead(run)
    runs = reproduce.module.FIGURES[name].runs
    command = ("--figure", name, *SMOKE, "--out", ".", "--max-minutes")
    printed = reproduce.run(*command, 0)
    assert list(ran) == [runs[0]] and "Out of time" in printed
    assert f"{runs[0]}, in {runs[0]}-smoke" in printed  # before it begins
    reproduce.run(*command, 1e6)
    assert list(ran) == list(runs)
    if name == "dense_cifar10":
        assert ran["cifar10_max_dense"].name == "cifar10_max-smoke"
        assert ran["cifar10_average"] is None
    written = {p.name for p in tmp_path.iterdir() if p.is_file()}
    assert written == {f"{name}-smoke.md", f"{name}-smoke.png"}
    table = (tmp_path / f"{name}-smoke.md").read_text(encoding="utf-8")
    assert all(f"| {run.replace('_', ' ')} " in table for run in runs)
    ran.clear()
    reproduce.run(*command, 0)  # nothing is run again
    assert not ran


@pytest.fixture(scope="module")
def files(tmp_path_factory):
    """Digits in the layout of the authors' files, up to 255, on a canvas of 40x40."""
    folder = tmp_path_factory.mktemp("files")
    return write_folder(folder, (*SIZE_FACTORS[:2], 1.0), batch_axis=False)


@pytest.mark.parametrize("canvas", [None, (24, 20)])
def test_files_have_what_is_computed(paper, files, canvas):
    source, options = paper("images").Source(h5=files), {"canvas": canvas}
    data = source.batches(
        "digits", "test", SIZE_FACTORS[1], **options, batch_size=25, limit=25
    )
    wanted = rescaled_arrays("digits", "test", SIZE_FACTORS[1], **options, limit=25)
    for pair in zip(next(data.as_numpy_iterator()), wanted, strict=True):
        np.testing.assert_allclose(*pair, atol=1e-6)
    data = source.batches("digits", "train", batch_size=10, **options)
    assert data.element_spec[0].shape == (None, *(canvas or (40, 40)), 1)


@pytest.mark.parametrize(
    ("dataset", "shape", "classes", "message"),
    [
        ("cifar10", (96, 96, 3), 10, "64x64x3, .*train, 96x96x3"),
        ("cifar10", (64, 64, 1), 10, "64x64x3, .*64x64x1"),
        ("cifar10", (64, 64, 3), 12, "10 classes.*12 classes"),
        ("cifar10", (64, 64, 3), 2, "10 classes.*2 classes"),
        ("digits", (36, 36, 1), 10, "digits: 40x40x1, .*36x36x1"),
        # These fit.
        ("mnist", (112, 112, 1), 10, None),
        ("cifar10", (64, 64, 3), 10, None),
    ],
)
def test_files_of_other_images(paper, tmp_path, dataset, shape, classes, message):
    images, labels = np.zeros((12, *shape), "uint8"), np.arange(12) % classes
    write(tmp_path / "mine_tr12_sctr1p000.h5", x_train=images, y_train=labels)
    source = paper("images").Source(h5=tmp_path)
    if message is None:
        assert source.batches(dataset, "train").element_spec[0].shape == shape
        return
    with pytest.raises(ValueError, match=rf"sctr1p000\.h5 must have .*{message}"):
        source.batches(dataset, "train")


def test_all_images_are_looked_up_before_training(reproduce, tmp_path, files):
    short = tmp_path / "files"
    short.mkdir()
    for file in files.iterdir():
        if "scte0p595" not in file.name:
            (short / file.name).symlink_to(file)
    reproduce.instead(None)
    for what in (("digits_max",), ("--figure", "single_cifar10")):
        with pytest.raises(SystemExit, match=r"'test' at size factor 0\.59"):
            reproduce.run(*what, *SMOKE, "--h5", short)
    (tmp_path / "all/digits").mkdir(parents=True)  # with a subfolder for each data set
    with pytest.raises(SystemExit, match=r"must have HDF5 files.*all/digits"):
        reproduce.run("digits_max", *SMOKE, "--h5", "all")


def test_those_of_the_last_run_of_a_figure_too(reproduce, monkeypatch):
    def look_up(_, dataset, parts):
        if dataset == "stl10":
            raise FileNotFoundError("no STL-10")

    monkeypatch.setattr(reproduce.module.Source, "look_up", look_up)
    reproduce.instead(None)
    with pytest.raises(SystemExit, match="no STL-10"):
        reproduce.run("--figure", "single")


def test_other_files_are_another_run(reproduce, tmp_path, files):
    reproduce.instead(lambda *_: None)
    command = ("digits_max", *SMOKE, "--h5")
    reproduce.run(*command, files)
    other = write_folder(tmp_path, SIZE_FACTORS[:2], batch_axis=False, dtype="uint8")
    with pytest.raises(SystemExit, match="images"):
        reproduce.run(*command, other)


@pytest.mark.slow
def test_from_files_to_a_figure(reproduce, tmp_path, files):
    """What its runs share is trained once."""
    figures, name = reproduce.module.FIGURES, "dense_cifar10"
    runs = ("cifar10_max", "cifar10_max_dense")
    figures["small"] = type(figures[name])("a part of A.5", {"cifar10": runs})
    reproduce.run("--figure", "small", *SMOKE, "--h5", files, "--out", ".")
    assert (tmp_path / "small-smoke.png").stat().st_size > 10_000
    logs = [tmp_path / f"{run}-smoke/training/log.csv" for run in runs]
    assert logs[0].read_bytes() == logs[1].read_bytes()
    text = (tmp_path / "cifar10_max-smoke/results.json").read_text(encoding="utf-8")
    assert json.loads(text)["factors"] == list(SIZE_FACTORS[:2])


def test_images_are_downloaded_where_they_are_asked_for(paper, monkeypatch):
    module, asked = paper("images"), []
    monkeypatch.setattr(module, "rescaled", lambda *_, **given: asked.append(given))
    module.Source("here", True).batches("cifar10", "test", batch_size=2)
    assert asked == [{"data_dir": "here", "download": True, "batch_size": 2}]


def test_a_stage_that_runs_share_has_one_row_and_one_curve(paper):
    records = paper("records")
    shared, own, *others = np.random.default_rng(0).random((5, 3)).tolist()
    runs = {"one": record("one", others[0], shared)}
    runs |= {"two": record("two", others[1], shared)}
    runs |= {"other/one": record("one", others[2], own)}
    names = ["one, first stage", "one", "two", "other/one, first stage", "other/one"]
    lines = [x for x in records.report(runs).splitlines() if x.startswith("|")]
    assert [line.split("|")[1].strip() for line in lines[2:]] == names
    assert [name.replace("_", " ") for name in records.curves(runs)] == names


def test_seeds_are_put_together(paper):
    def run(seed, accuracies, first_stage=0.5, **changes):
        return record("one", accuracies, [first_stage] * 3, seed=seed, **changes)

    runs = {
        "a0": run(0, [0.5, 0.9, 0.7]),
        "a1": run(1, [0.7, 0.9, 0.5]),
        "b": run(0, [0.8] * 3, 0.6, experiment={"widths": [8]}),
    }
    text = paper("records").over_seeds(runs)
    rows = [line for line in text.splitlines() if line.startswith("| one")]
    table = [[cell.strip() for cell in row.strip("|").split("|")] for row in rows]
    space = "\N{NO-BREAK SPACE}"
    ends = f"60.0 ±{space}{np.std([50, 70], ddof=1):.1f}"
    assert table == [
        ["one, first stage (a0, …)", "2", *[f"50.0 ±{space}0.0"] * 4],
        ["one (a0, …)", "2", ends, f"90.0 ±{space}0.0", ends, f"70.0 ±{space}0.0"],
        ["one, first stage (b, …)", "1", *["60.0"] * 4],
        ["one (b, …)", "1", *["80.0"] * 4],
    ]
