"""The package's data, recipes and networks by `compile` and `fit` of Keras' own."""

import keras
import numpy as np
import pytest
from keras import ops

from keras_gdrn.data import rescaled
from keras_gdrn.models import gauss_der_resnet
from keras_gdrn.training import Crossentropy, Recipe
from tests.training._small import network

RECIPE = Recipe(2, 16, label_smoothing=0.1)


def digits(split="train"):
    return rescaled("digits", split, canvas=12, limit=44, batch_size=16, shuffle=True)


@pytest.mark.parametrize("smoothing", [0.0, 0.1])
def test_labels_may_be_integers_or_one_hot(smoothing):
    scores = np.random.default_rng(0).normal(size=(5, 4)).astype("float32")
    labels = np.array([0, 3, 1, 1, 2])
    expected = keras.losses.CategoricalCrossentropy(True, label_smoothing=smoothing)(
        np.eye(4, dtype="float32")[labels], scores
    )
    loss = Crossentropy(smoothing)
    for given in (labels, labels[:, None], np.eye(4)[labels], labels.astype("float32")):
        np.testing.assert_allclose(
            *map(ops.convert_to_numpy, (loss(given, scores), expected)), rtol=1e-6
        )
    again = keras.losses.deserialize(keras.losses.serialize(loss))
    assert isinstance(again, Crossentropy)
    assert again.label_smoothing == smoothing


@pytest.mark.parametrize("label", [-1, 4])
def test_the_loss_of_a_label_that_is_no_class_is_nan(label):
    """Not the least there is, as that of an image without a class would be."""
    scores = np.zeros((3, 4), "float32")
    assert np.isnan(Crossentropy()(np.array([0, label, 3]), scores))
    assert np.isfinite(Crossentropy()(np.array([0, 1, 3]), scores))


def test_a_recipe_compiles_for_the_data_of_this_package(tmp_path):
    """And an interrupted training goes on by Keras' own callback."""
    data, epochs = digits(), []
    count = keras.callbacks.LambdaCallback(lambda epoch, logs: epochs.append(epoch))

    def trained(*callbacks):
        model = network()
        RECIPE.compile(model, steps_per_epoch=len(data))
        backup = keras.callbacks.BackupAndRestore(tmp_path / "backup")
        history = model.fit(
            data,
            epochs=RECIPE.epochs,
            shuffle=False,
            validation_data=digits("test"),
            callbacks=[backup, count, *callbacks],
            verbose=0,
        )
        return model, history.history

    class Interrupted(keras.callbacks.Callback):
        def on_epoch_begin(self, epoch, logs=None):
            if epoch == 1:
                raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        trained(Interrupted())
    model, history = trained()
    assert epochs == [0, 1, 1]
    assert {"loss", "accuracy", "val_loss", "val_accuracy"} <= {*history}
    assert int(model.optimizer.iterations) == 2 * len(data)
    model.save(tmp_path / "model.keras")
    loaded = keras.saving.load_model(tmp_path / "model.keras")
    assert isinstance(loaded.loss, Crossentropy)


def test_labels_of_unknown_shape():
    """As generators make them."""
    tf = pytest.importorskip("tensorflow")
    shapes = tf.TensorSpec((None, 12, 12, 1)), tf.TensorSpec((None,), "int64")

    def one():
        yield np.zeros((4, 12, 12, 1), "float32"), np.arange(4)

    data = tf.data.Dataset.from_generator(one, output_signature=shapes)
    data = data.apply(tf.data.experimental.assert_cardinality(1))
    model = network()
    RECIPE.compile(model, 1)
    history = model.fit(data, shuffle=False, verbose=0).history
    assert np.isfinite(history["loss"]).all()


@pytest.mark.slow
@pytest.mark.skipif(keras.backend.backend() != "tensorflow", reason="others always do")
@pytest.mark.parametrize(
    ("policy", "options"),
    [
        ("float32", {}),
        ("mixed_bfloat16", {}),
        ("mixed_float16", {}),
        ("float32", {"spatial_selection": "max"}),
        ("mixed_float16", {"spatial_selection": "max"}),
        ("float32", {"density": None}),
        ("float32", {"separable_blocks": 1, "trainable_sigma": True}),
    ],
)
def test_a_step_is_the_same_when_xla_compiles_it(policy, options):
    """As Keras does on a GPU; in float16 with a scaled loss."""
    keras.config.set_dtype_policy(policy)
    model = gauss_der_resnet((16, 16, 1), 3, [4, 6], 1.3, [0.5, 0.7, 1.0], **options)
    before, loss = model.get_weights(), keras.losses.SparseCategoricalCrossentropy(True)
    random = np.random.default_rng(0)
    images, labels = random.random((6, 16, 16, 1), "float32"), np.arange(6) % 3

    def step(xla):
        model.set_weights(before)
        model.compile(keras.optimizers.SGD(0.1), loss, jit_compile=xla)
        return model.train_on_batch(images, labels), model.get_weights()

    (loss_with, *after_with), (loss_without, *after) = map(step, (True, False))
    assert loss_with == pytest.approx(loss_without, rel=2e-3)
    change, difference = (
        np.concatenate([np.ravel(a - b) for a, b in zip(*pair, strict=True)])
        for pair in ((after[0], before), (after[0], after_with[0]))
    )
    tolerance = 1e-4 if policy == "float32" else 0.05
    assert np.linalg.norm(difference) < tolerance * np.linalg.norm(change)
