"""What is refused: the argument is named, and what was received."""

import functools
import math
import re

import keras
import numpy as np
import pytest

from keras_gdrn.layers import GaussDerConv, ScaleChannels
from keras_gdrn.models import (
    Preprocess,
    architecture,
    classify,
    decode_predictions,
    feature_extractor,
    from_preset,
    gauss_der_resnet,
    only_layer,
    save_to_preset,
    scale_channel,
    with_classes,
    with_input_shape,
    with_preprocess,
    with_sigma0,
)

pytestmark = pytest.mark.seen_on_tensorflow("what is refused does not depend on it")

CHANNEL = {"input_shape": (12, 10, 3), "classes": 2, "widths": (4, 4), "ratio": 1.2}
NETWORK = {**CHANNEL, "sigma0": (0.5, 1.0)}
# What the convolutions have, and the builders decide.
OWN = {"activation": "tanh", "data_format": "channels_first", "separable": True}
BY_BUILDERS = {
    "widths": ([], 16, "16", [4, 0], [4, 2.5], None),
    "ratio": (0, -1.2, math.nan, math.inf, True, "1.2"),
    "classes": (0, 2.5, None),
    "separable_blocks": (-1, 2, 0.5, True, "all"),
    "input_shape": (64, None, "ab", (28.0, 28, 1)),
    "head_initializer": ("zeros", None, 1),
    **{name: (value,) for name, value in OWN.items()},
}


@pytest.mark.parametrize("argument", BY_BUILDERS)
def test_by_the_builders(argument):
    for build, options in ((scale_channel, CHANNEL), (gauss_der_resnet, NETWORK)):
        for value in BY_BUILDERS[argument]:
            # Of several widths, the one that does not fit.
            told = "" if argument == "widths" else re.escape(repr(value))
            with pytest.raises(ValueError, match=f"Received: {argument}={told}"):
                build(**{**options, argument: value})


@functools.cache
def model(**options):
    return gauss_der_resnet(**NETWORK | options)


@functools.cache
def channel(**options):
    return scale_channel(**CHANNEL | options)


def known(**options):
    return with_preprocess(model(), Preprocess(("cat", "dog"), **options))


def with_dense():
    return keras.Model(model().input, keras.layers.Dense(5)(model().output))


def unbuilt():
    return keras.Sequential([ScaleChannels(channel(), (0.5, 1.0))])


PHOTO, NAN = np.zeros((9, 9, 3), "uint8"), [[0.0, 1.0], [np.nan, 1.0]]
FUNCTIONAL = r"`model` must be a functional .*Received: model="
HAS_THREE = r"`input_shape` must have 3.*\(12, 10, 3\).*Received: input_shape="
INSIDE = r"one of \['stem_conv', .*Received: layer="


def bare() -> str:
    """The file of a network without scale channels."""
    image = keras.Input((8, 8, 1))
    keras.Model(image, keras.layers.ReLU()(image)).save("own.keras")
    return "own.keras"


REFUSED = [
    (lambda: model(strides=2), "no argument `strides`.*Received: {'strides': 2}"),
    (lambda: model(num_classes=2), "`num_classes`. Did you mean `classes`"),
    # Told before the missing ones.
    *(
        (lambda b=b: b((28, 28, 1), num_classes=2), f"`{b.__name__}` has .*`classes`")
        for b in (scale_channel, gauss_der_resnet)
    ),
    (lambda: channel(zero_orders=1), r"Did you mean `zero_order`\?"),
    # What is refused is not proposed.
    (lambda: channel(sigmas=1), r"no argument `sigmas`\. Received: "),
    (lambda: architecture("cifar"), r"`name` .*rescaled_cifar10.*name='cifar'"),
    (lambda: architecture("stl10", strides=2), "`architecture` .*: {'strides': 2}"),
    *(
        (lambda x=x: with_sigma0(x(), [1.0]), FUNCTIONAL)
        for x in (unbuilt, keras.Model, lambda: None)
    ),
    (lambda: with_sigma0(channel(), [1.0]), "`ScaleChannels`.*'scale_channel'"),
    (lambda: with_input_shape(unbuilt(), (12, 10, 3)), FUNCTIONAL),
    (lambda: with_input_shape(model(), 24), "`input_shape` must be .*=24"),
    (lambda: with_input_shape(model(), (12, 3)), HAS_THREE),
    (lambda: with_input_shape(model(), (12, 10, 1)), HAS_THREE),
    (lambda: feature_extractor(unbuilt(), "head"), FUNCTIONAL),
    (lambda: feature_extractor(model(), "block7"), INSIDE),
    (lambda: feature_extractor(model(), "image"), INSIDE),  # is not applied
    (lambda: feature_extractor(channel(), "head"), "one `ScaleChannels`"),
    (lambda: only_layer(model(), GaussDerConv), r"`GaussDerConv`\. Rec.* with 0"),
    (lambda: only_layer(channel(), GaussDerConv), r"`GaussDerConv`\. Rec.* with 2"),
    (lambda: only_layer(None, ScaleChannels), "Received: model=None with 0"),
    (lambda: Preprocess("cat"), "`class_names` must.*class_names='cat'"),
    (lambda: Preprocess(1), "`class_names` must.*class_names=1"),
    (lambda: Preprocess(object_size=0), "`object_size` must.*object_size=0"),
    (lambda: Preprocess(extension=1), "`extension` must.*extension=1"),
    (lambda: classify(known(object_size=9), PHOTO, 0), "`object_size` must .*=0"),
    (lambda: classify(known(object_size=9), [PHOTO, "no.png"]), "no.png cannot be"),
    (lambda: classify(known(object_size=9), None), "`images` must be .*images=None"),
    (lambda: classify(known(), PHOTO), "`Preprocess` with an .*object_size=None"),
    (lambda: classify(model(), PHOTO), "`model` must apply one `Preprocess`"),
    (lambda: decode_predictions(NAN, "ab"), r"of 0 to 255.* for the images \[1\]"),
    (lambda: decode_predictions([[0.0]], "ab"), r"for each class.*\(1, 1\)"),
    (lambda: decode_predictions([[0.0, 1.0]], "ab", top=0), "`top` must be .*top=0"),
    (lambda: from_preset("digits", ratio=1.3), "`from_preset` has no .* `ratio`"),
    (lambda: from_preset("digits", classes=0), "`classes` must be .*=0"),
    (lambda: from_preset("digits", scale_pooling="avg"), "`scale_pooling` .*='avg'"),
    (lambda: model(spatial_selection="avg"), "`spatial_selection` must .*='avg'"),
    (lambda: architecture("digit"), r"Did you mean `digits`\? Received: name='digit'"),
    (lambda: with_classes(model(), "cat"), "`classes` must be .*='cat'"),
    (lambda: with_classes(model(), 3.5), r"integer >= 1. .*classes=3\.5"),
    (lambda: with_classes(model(), ["a", "a"]), r"differ .*=\['a', 'a'\]"),
    (lambda: with_classes(with_dense(), 3), "5 scores after 2 maps of .* 'head'"),
    (lambda: from_preset("digits", input_shape=(40, 40, 3)), "end in 1 channels"),
    (lambda: from_preset("imagenet"), r"one of \['cifar10.*preset='imagenet'"),
    (lambda: from_preset("stl10"), r"`architecture\('stl10'\)` builds.*preset='stl10'"),
    (lambda: from_preset(bare(), scale_dropout=0.1), "`ScalePooling`.*dropout': 0.1"),
    (lambda: save_to_preset(unbuilt(), "pets"), FUNCTIONAL),
    (lambda: from_preset("hf://me/pets"), "huggingface_hub"),  # is not installed
]


@pytest.mark.parametrize(("call", "message"), REFUSED)
def test_refused(call, message, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    with pytest.raises((ValueError, ImportError), match=f"(?s){message}"):
        call()
