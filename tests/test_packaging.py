"""What is shipped: dependencies, addresses, and what the commands need."""

import json
import re
import shutil
import subprocess
import sys
import tarfile
import tomllib
import zipfile
from pathlib import Path

import pytest

import keras_gdrn
from tests import without
from tests._commands import ROOT
from tests.test_architecture import imported

TEXT = (ROOT / "pyproject.toml").read_text(encoding="utf-8")
PROJECT = tomllib.loads(TEXT)["project"]
REPOSITORY = PROJECT["urls"]["Repository"]
# Imported by another name than they are installed by.
IMPORTED_AS = {"scikit_learn": "sklearn", "pillow": "PIL"}
# TensorFlow Datasets needs the first for a first load, Keras Tuner the last.
NOT_IMPORTED = {"importlib_resources", "tensorboard"}
# What is taken of the package's inside, wherever it is named, patched or imported.
PRIVATE = re.compile(
    r"\bkeras_gdrn[\w.]*\._[a-z]\w*"
    r"|\bfrom keras_gdrn[\w.]* import (\([^)]*|.*)\b_[a-z]\w*"
)
COMMANDS = (
    *("README.md", "CONTRIBUTING.md"),
    *(".github/workflows/test.yml", ".pre-commit-config.yaml"),
)


def required(requirements: list[str]) -> set[str]:
    names = {re.match(r"[\w-]+", r)[0].replace("-", "_") for r in requirements}
    return {IMPORTED_AS.get(name, name) for name in names}


def test_what_is_imported_is_required_and_the_reverse():
    paths = (ROOT / "keras_gdrn").rglob("*.py")
    found = {name.partition(".")[0] for path in paths for name in imported(path)}
    found -= sys.stdlib_module_names | {"keras_gdrn"}
    extras, needed = PROJECT["optional-dependencies"], PROJECT["dependencies"]
    known = required(needed + extras["viz"] + extras["ray"])
    # Who has another backend, or uploads to Hugging Face, has installed these.
    assert found - {"jax", "torch", "huggingface_hub"} <= known
    assert required(needed) - NOT_IMPORTED <= found


@pytest.mark.parametrize("folder", ["examples", "tuning"])
def test_what_uses_the_package_needs_no_private_name(folder):
    """Benchmarks may measure the inside."""
    paths = [*(ROOT / folder).rglob("*.py"), *(ROOT / folder).rglob("*.ipynb")]
    found = {p.name: PRIVATE.search(p.read_text(encoding="utf-8")) for p in paths}
    assert set(found.values()) == {None}, found


def test_there_is_one_address():
    assert all(address.startswith(REPOSITORY) for address in PROJECT["urls"].values())
    project = REPOSITORY.removeprefix("https://github.com/")
    for path in (ROOT / "examples" / "notebooks").glob("*.ipynb"):
        text = path.read_text(encoding="utf-8")
        cells = json.loads(text)["cells"]
        (install,) = (c for c in cells if c["id"] == "install")
        assert f'REPOSITORY = "{REPOSITORY}"' in "".join(install["source"]), path.name
        page = f"{project}/blob/main/examples/notebooks/{path.name})"
        found = re.findall(r"research\.google\.com/github/([^)]+\))", text)
        assert found and set(found) == {page}, path.name


def test_the_citation_is_of_this_version():
    citation = (ROOT / "CITATION.cff").read_text(encoding="utf-8")
    values = dict(re.findall(r"^([\w-]+): (.+)$", citation, re.M))
    assert values["version"] == keras_gdrn.__version__
    assert values["license"] == PROJECT["license"]
    assert values["repository-code"] == REPOSITORY


@pytest.mark.parametrize("path", COMMANDS)
def test_commands_are_those_of_the_makefile(path):
    makefile = (ROOT / "Makefile").read_text(encoding="utf-8")
    targets = set(re.findall(r"^([\w-]+):(?!=)", makefile, re.M))
    text = (ROOT / path).read_text(encoding="utf-8")
    called = set(re.findall(r"(?:^|`|run: |entry: )make ([a-z-]+)", text, re.M))
    assert called and called <= targets


@pytest.mark.skipif(not shutil.which("make"), reason="needs make")
def test_the_wheel_has_the_package_and_the_sdist_what_the_commands_need(
    tmp_path, monkeypatch
):
    build = pytest.importorskip("hatchling.build")
    monkeypatch.chdir(ROOT)
    with zipfile.ZipFile(tmp_path / build.build_wheel(str(tmp_path))) as archive:
        files = {path for path in Path("keras_gdrn").rglob("*.*") if path.is_file()}
        missing = files - set(map(Path, archive.namelist()))
    assert {path.suffix for path in missing} <= {".pyc"}
    with tarfile.open(tmp_path / build.build_sdist(str(tmp_path))) as archive:
        archive.extractall(tmp_path, filter="data")
    (folder,) = (path for path in tmp_path.iterdir() if path.is_dir())
    for target in ("demo", "check", "test"):
        command = ["make", "--dry-run", target]
        done = subprocess.run(command, cwd=folder, capture_output=True, text=True)
        assert done.returncode == 0, done.stderr
        named = re.findall(r"(?<![\w.-])(?:tests|examples|docs)[/\w.]*", done.stdout)
        assert named and all((folder / name).exists() for name in named)


@pytest.mark.slow
def test_what_is_missing_is_said_in_one_sentence(tmp_path):
    """On JAX, with what `docs/keras_users.md` has one install without TensorFlow."""
    program = tmp_path / "program.py"
    program.write_text(
        "from keras_gdrn import data, layers, models, training, visualization\n"
        "images = data.rescaled_arrays('digits', 'train', limit=8)\n"
        "batches = data.rescaled('digits', 'train', limit=8)\n"
        "model = models.gauss_der_resnet((40, 40, 1), 10, [2], 1.3, [1.0])\n"
        "for those in (images, batches):\n"
        "    training.fit(model, training.Recipe(1, 8), those, verbose=0)\n"
        "for line in (\n"
        "    'import keras_gdrn.tuning',\n"
        '    \'data.rescaled("mnist", "test", data_dir=".", download=True)\',\n'
        "    'visualization.plot_sizes({1.0: images[0][:2]})',\n"
        "):\n"
        "    try:\n"
        "        exec(line)\n"
        "    except ImportError as error:\n"
        "        print(error)\n",
        encoding="utf-8",
    )
    missing = (*without.TENSORFLOW, "keras_tuner", "tensorboard", "matplotlib")
    said = without.run(missing, str(program)).splitlines()
    assert len(said) == 3
    for line, name in zip(
        said, ("keras-tuner", "tensorflow", "matplotlib"), strict=True
    ):
        assert f"`pip install {name}" in line
