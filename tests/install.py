"""Whether the package works where it is installed: `python tests/install.py`.

Builds the wheel into an environment that has nothing but the package and what it
depends on (pip downloads TensorFlow for it). There, in another folder, this file trains
a small network, saves, loads and searches.
"""

import os
import subprocess
import sys
import tempfile
import venv
from importlib.resources import files
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]


def main() -> None:
    with tempfile.TemporaryDirectory() as folder:
        venv.create(folder, with_pip=True)
        program = "Scripts/python.exe" if os.name == "nt" else "bin/python"
        python = str(Path(folder) / program)
        subprocess.run([python, "-m", "pip", "install", "--quiet", ROOT], check=True)
        # -I: neither the folder of the script nor PYTHONPATH are searched.
        command = [python, "-I", __file__, "installed"]
        subprocess.run(command, cwd=folder, check=True)
    print("It can be installed, and works.")


def try_installed() -> None:
    os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")
    import keras
    import keras_tuner
    import numpy as np

    import keras_gdrn
    from keras_gdrn import data, evaluation, models, training, tuning

    package = Path(keras_gdrn.__file__).resolve()
    assert ROOT not in package.parents, f"{package} is not the installed one"
    assert files("keras_gdrn").joinpath("py.typed").is_file(), "no type hints"
    images, labels = data.rescaled_arrays("digits", "train", limit=64)
    model = models.gauss_der_resnet((40, 40, 1), 10, [4, 4], 1.3, sigma0=[0.7, 1.4])
    training.fit(model, training.Recipe(1, 32), (images, labels), verbose=0)
    model.save("model.keras")
    loaded = keras.saving.load_model("model.keras")
    scores = [keras.ops.convert_to_numpy(m(images[:8])) for m in (model, loaded)]
    np.testing.assert_allclose(*scores, rtol=1e-5, atol=1e-5)
    histogram = evaluation.scale_selection_histogram(loaded, {1.0: (images, labels)})
    assert histogram.shares.shape == (1, 2)
    space = tuning.SearchSpace(blocks=(1,), stem_width=(4,), width=(4,)).only()
    recipe = training.Recipe(1, 32)
    hypermodel = tuning.GaussDerResNetHyperModel(
        (40, 40, 1), 10, space=space, recipe=recipe, single_scale_epochs=1
    )
    tuner = keras_tuner.RandomSearch(hypermodel, "val_accuracy", max_trials=1)
    tuner.search(images, labels, validation_split=0.5, verbose=0)
    tuner.results_summary()
    (trial,) = tuner.oracle.trials.values()
    assert trial.status == "COMPLETED", trial.message
    print(f"keras_gdrn {keras_gdrn.__version__} works with Keras {keras.__version__}")


if __name__ == "__main__":
    try_installed() if sys.argv[1:] == ["installed"] else main()
