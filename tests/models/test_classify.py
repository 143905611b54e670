"""What photographs show: of any kind and size, in one call."""

import numpy as np
import pytest
from PIL import Image

from keras_gdrn.data import rescale, rescaled_arrays
from keras_gdrn.layers import ScaleChannels
from keras_gdrn.models import (
    Preprocess,
    classify,
    decode_predictions,
    from_preset,
    gauss_der_resnet,
    with_preprocess,
    with_sigma0,
)
from tests.layers._contract import numpy, randomize

PHOTO = np.random.default_rng(0).integers(0, 256, (30, 20, 3)).astype("uint8")
SCALES = (0.7, 1.0, 1.4)


def network(shape=(16, 16, 3), sigma0=SCALES, pooling="max", **options):
    known = {"class_names": ["cat", "dog"], "object_size": 10, **options}
    model = gauss_der_resnet(shape, 2, [4], 1.5, sigma0, pooling, order=1)
    randomize(model)
    model.get_layer("scale_channels").network.get_layer("head").bias.assign([3.0, 4.0])
    return with_preprocess(model, Preprocess(**known))


def assert_same(answers, others):
    for one, other in zip(answers, others, strict=True):
        assert (one.name, one.sigma0) == (other.name, other.sigma0)
        assert one.probability == pytest.approx(other.probability, rel=1e-4)


@pytest.mark.seen_on_tensorflow("files do not depend on it")
def test_one_answer_for_whatever_holds_the_photograph(tmp_path):
    model = network()
    Image.fromarray(PHOTO).save(tmp_path / "a.png")
    path = tmp_path / "a.png"
    forms = (path, str(path), Image.open(path), PHOTO, PHOTO / 255, [PHOTO])
    (expected,) = classify(model, PHOTO)
    assert expected.name in ("cat", "dog") and 0.5 <= expected.probability <= 1
    assert expected.top[0] == expected[:2] and len(expected.top) == 2
    for form in forms:
        assert_same(classify(model, form), [expected])


@pytest.mark.seen_on_tensorflow("around the network it is NumPy")
def test_photographs_of_several_sizes():
    model = network()
    photos = [PHOTO, PHOTO[:, :13], PHOTO[:9], PHOTO[..., :1]] * 10
    assert_same(classify(model, photos), [classify(model, x)[0] for x in photos])


@pytest.mark.seen_on_tensorflow("around the network it is NumPy")
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
        ((top,),) = decode_predictions(scaled(image[None]), ["cat", "dog"], top=1)
        (answer,) = classify(scaled, PHOTO, object_size)
        assert answer.name == top[0]
        assert answer.probability == pytest.approx(top[1], rel=1e-4)


@pytest.mark.seen_on_tensorflow("around the network it is NumPy")
@pytest.mark.parametrize("pooling", ["max", "logsumexp", "average"])
def test_scale_is_that_with_the_highest_score(pooling):
    model = network((20, 20, 3), pooling=pooling, object_size=20)
    image = PHOTO[5:25]
    (answer,) = classify(model, image)
    label = ["cat", "dog"].index(answer.name)
    channel = model.get_layer("scale_channels").network
    each = [
        numpy(ScaleChannels(channel, [s])(image[None] / 255))[0, 0, label]
        for s in SCALES
    ]
    assert answer.sigma0 == SCALES[int(np.argmax(each))]


@pytest.mark.seen_on_tensorflow("the weights are one")
def test_digits_of_three_sizes():
    """Bitmaps of 8 x 8, and of two and four times as many pixels."""
    model = from_preset("digits")
    images, labels = rescaled_arrays("digits", "test", 0.4, canvas=8, limit=20)
    for times in (1, 2, 4):
        photos = np.repeat(np.repeat(images, times, 1), times, 2)
        names = [answer.name for answer in classify(model, np.clip(photos, 0, 1))]
        assert np.mean(np.array(names) == labels.astype(str)) > 0.8


def test_predictions_are_softmax_and_best_first():
    found = decode_predictions([[0.0, 2.0, 1.0], [3.0, 0.0, 0.0]], "abc", top=2)
    assert [[name for name, _ in best] for best in found] == [["b", "c"], ["a", "b"]]
    shares = np.exp([2, 1]) / np.exp([0, 2, 1]).sum()
    np.testing.assert_allclose([share for _, share in found[0]], shares, rtol=1e-6)
    assert decode_predictions([[0.0, 2.0]], network(), top=1)[0][0][0] == "dog"
    assert decode_predictions([[0.0, 2.0]], [])[0][0][0] == "class 1"


@pytest.mark.seen_on_tensorflow("around the network it is NumPy")
def test_refused(tmp_path):
    with pytest.raises(ValueError, match=r"values of 0 to 255.* for the images \[1\]"):
        decode_predictions([[0.0, 1.0], [np.nan, 1.0]], ["cat", "dog"])
    with pytest.raises(ValueError, match=r"a name for each class.*\(1, 3\)"):
        decode_predictions([[0.0, 1.0, 2.0]], ["cat", "dog"])
    with pytest.raises(ValueError, match="`top` must be"):
        decode_predictions([[0.0]], ["cat"], top=0)
    with pytest.raises(ValueError, match="must know the size of its objects"):
        classify(network(object_size=None), PHOTO)
    with pytest.raises(ValueError, match="must apply one `Preprocess`"):
        classify(gauss_der_resnet((8, 8, 3), 2, [4], 1.2, [1.0]), PHOTO)
    with pytest.raises(ValueError, match="`object_size` must be"):
        classify(network(), PHOTO, object_size=0)
    with pytest.raises(ValueError, match=r"none\.png cannot be read"):
        classify(network(), [PHOTO, tmp_path / "none.png"])
    with pytest.raises(ValueError, match="`photos` must be"):
        classify(network(), None)
