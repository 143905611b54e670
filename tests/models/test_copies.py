"""`only_layer`: the layer of a kind, or how many there are."""

import pytest

from keras_gdrn.layers import GaussDerConv, ScaleChannels, ScalePooling
from keras_gdrn.models import gauss_der_resnet, only_layer


def test_the_only_layer_of_a_kind():
    model = gauss_der_resnet((8, 8, 1), 3, [2], 1.3, [0.7, 1.4], "average")
    assert only_layer(model, ScalePooling).mode == "average"
    assert only_layer(model, ScaleChannels) is model.get_layer("scale_channels")
    with pytest.raises(ValueError, match=r"one `GaussDerConv`\. Received: .* with 0"):
        only_layer(model, GaussDerConv)  # those of the scale channels are inside
    channel = only_layer(model, ScaleChannels).network
    with pytest.raises(ValueError, match=r"one `GaussDerConv`\. Received: .* with 2"):
        only_layer(channel, GaussDerConv)
    with pytest.raises(ValueError, match="a model None with 0"):
        only_layer(None, ScaleChannels)
