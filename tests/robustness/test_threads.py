"""Predictions at the same time, from several threads, are those of one thread."""

from concurrent.futures import ThreadPoolExecutor

import numpy as np

from keras_gdrn.models import gauss_der_resnet, with_sigma0


def test_models_that_share_weights_predict_side_by_side():
    model = gauss_der_resnet((None, None, 1), 3, [3, 4], 1.3, sigma0=[0.7, 1.0, 1.4])
    models = [model, with_sigma0(model, [1.0])]

    def predicted(number: int) -> np.ndarray:
        images = np.random.default_rng(number).random((2, 8 + number % 3, 9, 1))
        return np.asarray(models[number % 2](images.astype("float32")))

    expected = [predicted(number) for number in range(24)]
    with ThreadPoolExecutor(8) as threads:
        found = list(threads.map(predicted, range(24)))
    for one, other in zip(found, expected, strict=True):
        np.testing.assert_allclose(one, other, rtol=1e-5, atol=1e-6)
