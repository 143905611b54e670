from functools import partial

import keras
from keras import ops

from keras_gdrn._checks import check_positive, check_sigma0
from keras_gdrn.layers._arguments import check_options
from keras_gdrn.layers._calls import UnsupportedLayer
from keras_gdrn.layers._evaluation import evaluate_on_grids, evaluate_on_pixels
from keras_gdrn.layers._network import Network
from keras_gdrn.layers._plan import Plan


@keras.saving.register_keras_serializable(package="keras_gdrn")
class ScaleChannels(keras.layers.Layer):
    """Applies one network, with one set of weights, at several initial scales.

    `{Γ_{σ_0}(f)}` for every `σ_0` in `sigma0`. Scale covariance says that `Γ_{σ_0}(f)`
    is `Γ_1(f(σ_0 ·))`: the image is sampled at points σ_0 apart, and from there on all
    scale channels are the same network. So any Keras layer in it, even a 3×3 `Conv2D`,
    is scale covariant; only means over a whole map follow the canvas instead. Batch
    normalization takes its statistics over all scale channels together.

    If the network ends in central selection, only a window around the center of each
    map is computed, smaller from layer to layer. Maps that the network itself returns
    are whole, and interpolated at the pixels.

    Departure: on a grid, kernels are differences of a sampled continuous Gaussian. At a
    density of 1, 1.4 or 2, they are within 19, 9 or 4 percent of Gaussian derivatives.

    Source: Perzanowski & Lindeberg, Eqs. sigma0-multichan and
    complete-multi-net-definition.

    Args:
        network: Any Keras layer or model with one input and one output tensor,
            typically a scale channel that ends in `SpatialSelection`. Without a
            spatial selection its maps come out at every scale, as
            `(batch, scale, *spatial, channels)`.
        sigma0: Initial scales σ_0, positive and finite, in pixels; at least one.
        density: Samples per σ: the points of a map of scale σ are σ_0 σ / density
            apart. `None` evaluates the network as the paper does: whole maps at every
            pixel, each `GaussDerConv` at the scale `σ_0 σ`, every other layer as it is.
        receptive_field: Half-width of the windows, in standard deviations of the
            effective receptive field; `None` for whole maps. At the input of a layer,
            this deviation is `σ_0 √(Σ σ²)` over that layer and all that follow; the
            last one counts twice.

    Input shape:
        `(batch, …)`, as the network takes it.

    Output shape:
        `(batch, scale, …)`, scales in the order of `sigma0`.

    Raises:
        ValueError: If an argument is out of its range, or one `ScaleChannels` is inside
            another. When it is built, also if `σ_0 σ` of a layer exceeds the image, the
            network has another input shape, or a layer cannot work on grids.

    Example:

    >>> channel = keras_gdrn.models.scale_channel((64, 64, 3), 10, [16, 32], ratio=1.2)
    >>> image = keras.Input((64, 64, 3))
    >>> ScaleChannels(channel, sigma0=[0.7, 1.0, 1.4])(image).shape
    (None, 3, 10)
    """

    def __init__(
        self,
        network,
        sigma0,
        density: float | None = 1.0,
        receptive_field: float | None = 1.5,
        **kwargs,
    ):
        check_options(self, ScaleChannels, kwargs)
        super().__init__(**kwargs)
        if not isinstance(network, keras.layers.Layer):
            raise ValueError(
                "`network` must be a Keras layer or model. "
                f"Received: network={network!r} of type {type(network).__name__}"
            )
        self.network = network
        if not self.trainable:
            network.trainable = False
        self.sigma0 = check_sigma0(sigma0)
        given = {"density": density, "receptive_field": receptive_field}
        self.density, self.receptive_field = (
            value if value is None else check_positive(name, value)
            for name, value in given.items()
        )
        if any(isinstance(layer, ScaleChannels) for layer in network._flatten_layers()):
            raise ValueError(
                "`ScaleChannels` cannot be nested in another `ScaleChannels`. "
                f"Received: network={network.name!r}, which applies one, for "
                f"sigma0={self.sigma0}"
            )

    def build(self, input_shape):
        input_shape, known = tuple(input_shape), {}
        if self.network.built:  # for images of these sizes, if it is a Keras model
            known = dict(enumerate(getattr(self.network, "input_shape", ())[1:], 1))
        else:
            self.network(keras.KerasTensor(input_shape, self.compute_dtype))
        scales, density = self.sigma0, self.density
        try:
            network = Network(self.network, input_shape, scales, density)
            evaluate, self.plan = partial(evaluate_on_pixels, network, scales), None
            if density is not None:
                self.plan = Plan(network, scales, density, self.receptive_field)
                evaluate = partial(evaluate_on_grids, self.plan)
        except UnsupportedLayer as reason:
            raise ValueError(
                f"The network {self.network.name!r} cannot be evaluated at several "
                f"scales: {reason}. Received: density={density}"
            ) from None
        self._layers_when_built = self._network_layers()
        self._evaluate, axis = evaluate, network.channel_axis
        axes = {axis: input_shape[axis], **known}
        self.input_spec = keras.InputSpec(ndim=len(input_shape), axes=axes)

    def call(self, inputs, training=None):
        if self._network_layers() != self._layers_when_built:
            raise ValueError(
                "`network` must not change once it is built: make a new "
                "`ScaleChannels` of it. Received: network="
                f"{self.network.name!r}, whose layers have changed"
            )
        # A TensorFlow variable lacks some attributes of a tensor.
        outputs = self._evaluate(ops.convert_to_tensor(inputs), training)
        # -1 stands for the batch: the other sizes are known from the network.
        outputs = ops.reshape(outputs, (len(self.sigma0), -1, *ops.shape(outputs)[1:]))
        return ops.swapaxes(outputs, 0, 1)

    @property
    def layers(self) -> list:
        """The layers that `summary(expand_nested=True)` shows."""
        return [self.network]

    def __dir__(self):
        # Keras saves the weights of what is listed, and `network` is listed already.
        return [name for name in super().__dir__() if name != "layers"]

    def _network_layers(self) -> list[int]:
        return [id(layer) for layer in self.network._flatten_layers()]

    def compute_output_shape(self, input_shape):
        batch, *rest = self.network.compute_output_shape(input_shape)
        return (batch, len(self.sigma0), *rest)

    def compute_output_spec(self, inputs, training=None):
        # The network decides the dtype too: its last layer may have its own policy.
        output = self.network.compute_output_spec(inputs)
        batch, *rest = output.shape
        return keras.KerasTensor((batch, len(self.sigma0), *rest), output.dtype)

    def get_config(self):
        config = super().get_config()
        config["network"] = keras.saving.serialize_keras_object(self.network)
        # Keras marks an object as shared when it serializes it for the second time,
        # which must not be after this configuration has been copied.
        keras.saving.serialize_keras_object(self.network)
        config["sigma0"] = list(self.sigma0)
        config["density"] = self.density
        config["receptive_field"] = self.receptive_field
        return config

    @classmethod
    def from_config(cls, config):
        if "subpixel" in config or "density" not in config:
            raise ValueError(
                "The network was saved by a version of the package that scaled kernels "
                "instead of grids: its weights belong to another evaluation. "
                f"Received: a config with {sorted(config)}"
            )
        network = keras.saving.deserialize_keras_object(config.pop("network"))
        return cls(network, **config)
