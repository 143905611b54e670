import keras


def batch_normalization(name: str | None = None, dtype=None):
    """Batch normalization with the paper's constants.

    The authors' framework counts momentum the other way round (0.1 there). With Keras'
    default of 0.99 the statistics of a short training are still the initial ones.
    """
    return keras.layers.BatchNormalization(
        momentum=0.9, epsilon=1e-5, name=name, dtype=dtype
    )
