"""Predictions at the same time, from several threads, are those of one thread."""

from concurrent.futures import ThreadPoolExecutor

import numpy as np

from keras_gdrn.models import gauss_der_resnet, with_sigma0


def test_models_that_share_weights_predict_side_by_side():
    model = gauss_der_resnet((None, None, 1), 3, [3, 4], 1.3, sigma0=[0.7, 1.0, 1.4])
    models = [model, with_sigma0(model, [1.0])]
    rng = np.random.default_rng(0)
    jobs = [
        (models[i % 2], rng.random((2, 8 + i % 3, 9, 1), "float32")) for i in range(24)
    ]
    expected = [np.asarray(m(images)) for m, images in jobs]
    with ThreadPoolExecutor(8) as threads:
        found = list(threads.map(lambda job: np.asarray(job[0](job[1])), jobs))
    for one, other in zip(found, expected, strict=True):
        np.testing.assert_allclose(one, other, rtol=1e-5, atol=1e-6)
