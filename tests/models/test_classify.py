"""What photographs show: of any kind and size, in one call."""

import io

import numpy as np
import pytest
from PIL import Image

from keras_gdrn.data import rescale
from keras_gdrn.layers import ScaleChannels
from keras_gdrn.models import (
    Preprocess,
    classify,
    decode_predictions,
    gauss_der_resnet,
    with_preprocess,
    with_sigma0,
)
from tests.layers._contract import numpy, randomize

pytestmark = pytest.mark.seen_on_tensorflow("around the network it is NumPy")

PHOTO = np.random.default_rng(0).integers(0, 256, (30, 20, 3)).astype("uint8")
NAMES, SCALES = ["cat", "dog"], (0.7, 1.0, 1.4)


def network(shape=(16, 16, 3), pooling="max", object_size=10, extension="mirror"):
    model = gauss_der_resnet(shape, 2, [4], 1.5, SCALES, pooling, order=1)
    randomize(model)
    model.get_layer("scale_channels").network.get_layer("head").bias.assign([3.0, 4.0])
    return with_preprocess(model, Preprocess(NAMES, object_size, extension))


def assert_same(answers, others):
    for one, other in zip(answers, others, strict=True):
        assert (one.name, one.sigma0) == (other.name, other.sigma0)
        assert one.probability == pytest.approx(other.probability, rel=1e-4)


def test_one_answer_for_whatever_holds_the_photograph(tmp_path):
    model, path = network(), tmp_path / "a.png"
    Image.fromarray(PHOTO).save(path)
    (expected,) = classify(model, PHOTO)
    assert expected.name in NAMES and 0.5 <= expected.probability <= 1
    assert expected.top[0] == expected[:2] and len(expected.top) == 2
    for form in (path, str(path), Image.open(path), PHOTO / 255, [PHOTO]):
        assert_same(classify(model, form), [expected])


@pytest.mark.parametrize("shape", [(16, 16, 3), (None, None, 3)])
def test_photographs_of_several_sizes(shape):
    model = network(shape)
    photos = [PHOTO, PHOTO[:, :13], PHOTO[:9], PHOTO[..., :1]]
    found = classify(model, photos * 10)  # more than a batch
    assert_same(found, [classify(model, x)[0] for x in photos] * 10)


@pytest.mark.parametrize(
    ("shape", "object_size"), [((16, 16, 3), 25), ((None, None, 3), None)]
)
def test_object_gets_the_size_of_training(shape, object_size):
    """Ten pixels where sigma_0 is 1, and twice as many for scales twice as large."""
    model = network(shape, extension="zero")
    for scale in (1, 2):
        scaled = with_sigma0(model, [scale * sigma for sigma in SCALES])
        factor = scale * 10 / (object_size or 20)
        size = tuple(int(np.ceil(factor * n)) for n in PHOTO.shape[:2])
        canvas = size if None in shape else (16, 16)
        image = np.clip(rescale(PHOTO, factor, canvas, "zero") / 255, 0, 1)
        ((top,),) = decode_predictions(scaled(image[None]), NAMES, top=1)
        (answer,) = classify(scaled, PHOTO, object_size)
        assert answer.name == top[0]
        assert answer.probability == pytest.approx(top[1], rel=1e-4)


@pytest.mark.parametrize("pooling", ["max", "logsumexp", "average"])
def test_scale_is_that_with_the_highest_score(pooling):
    model, image = network((20, 20, 3), pooling, object_size=20), PHOTO[5:25]
    (answer,) = classify(model, image)
    channel = model.get_layer("scale_channels").network
    scores = numpy(ScaleChannels(channel, SCALES)(image[None] / 255))[0]
    best = np.argmax(scores[:, NAMES.index(answer.name)])
    assert answer.sigma0 == SCALES[best]


def test_predictions_are_softmax_and_best_first():
    found = decode_predictions([[0.0, 2.0, 1.0], [3.0, 0.0, 0.0]], "abc", top=2)
    assert [[name for name, _ in best] for best in found] == [["b", "c"], ["a", "b"]]
    shares = np.exp([2, 1]) / np.exp([0, 2, 1]).sum()
    np.testing.assert_allclose([share for _, share in found[0]], shares, rtol=1e-6)
    assert decode_predictions([[0.0, 2.0]], network(), top=1)[0][0][0] == "dog"
    assert decode_predictions([[0.0, 2.0]], [])[0][0][0] == "class 1"


def test_what_a_web_server_has(tmp_path):
    model, path = network(), tmp_path / "a.png"
    Image.fromarray(PHOTO).save(path)
    content = path.read_bytes()
    expected = classify(model, path)
    assert_same(classify(model, content), expected)
    for part in (bytearray(content), memoryview(content), io.BytesIO(content)):
        assert_same(classify(model, part), expected)
    for dtype in ("U", "S", "O"):
        paths = np.array([str(path)] * 2).astype(dtype)
        assert_same(classify(model, paths), expected * 2)
    assert_same(classify(model, [content, path]), expected * 2)
    with pytest.raises(ValueError, match="The opened file cannot be read as an image"):
        classify(model, b"no image")


@pytest.mark.parametrize("photos", ([None], [{"url": "a"}], [["a.png"]]))
def test_what_is_no_photograph(photos):
    with pytest.raises(ValueError, match=r"its bytes, .*Received"):
        classify(network(), photos)
