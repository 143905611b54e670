"""Which private names of Keras Tuner are used: in one file, and by which versions."""

import re
from pathlib import Path

import keras_tuner
import pytest
from gdrn_search import keras_tuner_internals as internals

ROOT = Path(__file__).resolve().parents[2]
USED = {
    "keras_tuner.src.distribute.oracle_chief.OracleServicer",
    "keras_tuner.src.engine.conditions",
    "keras_tuner.src.protos.get_service",
    "keras_tuner.src.protos.get_service_grpc",
    "keras_tuner.src.utils.save_json",
    "keras_tuner.oracles.GridSearchOracle._compare",
    "keras_tuner.oracles.GridSearchOracle._ordered_ids",
    "keras_tuner.oracles.GridSearchOracle._populate_next",
    "keras_tuner.oracles.GridSearchOracle._retry_queue",
}
# A name below `src`, or an attribute with an underscore of what is Keras Tuner's.
PRIVATE = re.compile(
    r"keras_tuner\.src[.\w]*|from keras_tuner\.src.*|\b(?:oracle|tuner|trial|hp)\._\w+"
)


def uses(path):
    """The private names in a file's code, as it writes them."""
    return set(PRIVATE.findall(path.read_text(encoding="utf-8")))


def test_these_and_no_others():
    assert set(internals.NAMES) == USED
    lines = Path(internals.__file__).read_text(encoding="utf-8")
    code = lines[lines.index("for _name in NAMES") :]
    for name in PRIVATE.findall(code):
        ending = name.removeprefix("oracle.").removesuffix(".print")
        assert any(used.endswith(ending) for used in USED), name


def test_no_other_file_uses_any():
    files = [
        path
        for folder in ("keras_gdrn", "tuning", "examples", "tests/tuning")
        for path in (ROOT / folder).rglob("*.py")
        if path not in (Path(__file__), Path(internals.__file__))
    ]
    assert len(files) > 50
    assert {path.name: uses(path) for path in files if uses(path)} == {}


@pytest.mark.parametrize("name", sorted(USED))
def test_this_version_has(name):
    internals.require(name)


@pytest.mark.parametrize(
    "name",
    [
        "keras_tuner.src.utils.save_yaml",
        "keras_tuner.src.distribution.oracle_chief.OracleServicer",
        "keras_tuner.oracles.GridSearchOracle._line",
    ],
)
def test_version_that_lacks_a_name(name):
    version = re.escape(f"Keras Tuner {keras_tuner.__version__} has no {name}")
    with pytest.raises(
        ImportError, match=rf"{version}, .* versions 1\.4\.7 and 1\.4\.8"
    ):
        internals.require(name)
