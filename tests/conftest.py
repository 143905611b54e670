"""What every test starts from: fixed seeds, full float32 products, one BLAS thread."""

import gc
import os
from importlib.metadata import version
from pathlib import Path

from packaging.version import Version

# Before NumPy is loaded. The factorizations are small: on a busy machine, threads that
# wait for one another make them a hundred times slower.
os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "2")
# Commands that tests import turn oneDNN on for processes that start later: their
# results would differ from those of this one.
os.environ.setdefault("TF_ENABLE_ONEDNN_OPTS", "0")
# On JAX the tests spend their time in compiling: every operation for every shape.
# (At level 0, XLA on CPU makes NaN of a gradient that is finite at all other levels.)
os.environ.setdefault(
    "XLA_FLAGS",
    "--xla_backend_optimization_level=1 --xla_llvm_disable_expensive_passes=true "
    "--xla_cpu_parallel_codegen_split_count=1 "
    "--xla_cpu_enable_concurrency_optimized_scheduler=false "
    "--xla_disable_hlo_passes=constant_folding"
    # Later ones do not know it, and end the process.
    + " --xla_cpu_use_fusion_emitters=false"
    * (Version(version("jaxlib")) < Version("0.11")),
)
# What several tests train is compiled once. Each process has a folder of its own, as
# JAX does not write its files at once.
os.environ.setdefault(
    "JAX_COMPILATION_CACHE_DIR",
    f"{Path(__file__).parents[1]}/build/jax/"
    + os.environ.get("PYTEST_XDIST_WORKER", "main"),
)
os.environ.setdefault("JAX_PERSISTENT_CACHE_MIN_COMPILE_TIME_SECS", "0.1")
os.environ.setdefault("JAX_PERSISTENT_CACHE_MIN_ENTRY_SIZE_BYTES", "-1")

# Side by side, each process keeps to its share of the processor: threads of several on
# the same cores wait for one another, and small networks take ten times as long.
if "PYTEST_XDIST_WORKER" in os.environ and hasattr(os, "sched_setaffinity"):
    number = int(os.environ["PYTEST_XDIST_WORKER"].removeprefix("gw"))
    cores = sorted(os.sched_getaffinity(0))
    share = cores[number :: int(os.environ["PYTEST_XDIST_WORKER_COUNT"])]
    os.sched_setaffinity(0, share or cores)

import pytest

from tests._commands import command as command

# Graphs are made of many small objects: Python looks through all there are after every
# 700 new ones, which would be a tenth of the time.
gc.set_threshold(100_000, 20, 100)


def pytest_collection_finish():
    gc.freeze()


def backend() -> str:
    """Keras is loaded by those who run tests, not by who hands them out to others."""
    import keras

    return keras.backend.backend()


def pytest_runtest_setup(item):
    seen = item.get_closest_marker("seen_on_tensorflow")
    if seen and backend() != "tensorflow":
        pytest.skip(f"seen on TensorFlow: {seen.args[0]}")


def pytest_collection_modifyitems(items):
    """Files with slow tests come first, so that processes side by side end together."""
    slow = {item.path for item in items if item.get_closest_marker("slow")}
    items.sort(key=lambda item: item.path not in slow)


def pytest_collection(session):
    if getattr(session.config.option, "numprocesses", None) or backend() != "torch":
        return
    import torch

    def as_array(tensor, dtype=None, copy=None):
        """NumPy takes tensors with a gradient too, as those of other backends."""
        values = tensor.numpy(force=True)
        return values if dtype is None else values.astype(dtype)

    def as_it_is(tensor, array, context=None, return_scalar=False):
        return array

    torch.Tensor.__array__, torch.Tensor.__array_wrap__ = as_array, as_it_is


@pytest.fixture(scope="session", autouse=True)
def full_float32_products():
    """A GPU would round the factors of float32 products to ten bits."""
    if backend() == "tensorflow":
        import tensorflow as tf

        tf.config.experimental.enable_tensor_float_32_execution(False)
    elif backend() == "jax":
        import jax

        jax.config.update("jax_default_matmul_precision", "highest")


@pytest.fixture(scope="session", autouse=True)
def pipelines_that_end_at_once():
    """What Keras makes of arrays too is without the thread that tunes a pipeline."""
    if backend() != "tensorflow":
        yield
        return
    import tensorflow as tf

    from keras_gdrn.data._source import untuned

    begin = tf.data.Dataset.__iter__
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(tf.data.Dataset, "__iter__", lambda data: begin(untuned(data)))
        yield


@pytest.fixture(autouse=True)
def fixed_seeds_and_policy():
    import keras

    keras.utils.set_random_seed(0)
    policy = keras.config.dtype_policy()
    yield
    keras.config.set_dtype_policy(policy)


@pytest.fixture
def float64():
    """For tests whose tolerances need float64."""
    if backend() != "tensorflow":
        pytest.skip(f"on {backend()}, Keras computes in float32 what is float64")


@pytest.fixture
def step_by_step():
    """Training without a graph: to trace one takes longer than a few small steps.

    That graphs do the same is told by the tests of the layers and of `fit`.
    """
    if backend() != "tensorflow":
        yield
        return
    import tensorflow as tf

    tf.config.run_functions_eagerly(True)
    yield
    tf.config.run_functions_eagerly(False)


def _directory_with(name: str) -> Path:
    shared = Path(__file__).parents[2] / "shared" / "tfds"
    for directory in (os.environ.get("TFDS_DATA_DIR"), shared):
        if directory and (Path(directory) / name).is_dir():
            return Path(directory)
    pytest.skip(f"{name} is neither in TFDS_DATA_DIR nor in {shared}")


@pytest.fixture(scope="session")
def cifar10_dir() -> Path:
    """A directory in which TensorFlow Datasets has prepared CIFAR-10."""
    return _directory_with("cifar10")


@pytest.fixture(scope="session")
def mnist_dir() -> Path:
    """A directory in which TensorFlow Datasets has prepared MNIST."""
    return _directory_with("mnist")
