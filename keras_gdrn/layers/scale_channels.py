import warnings
from collections.abc import Iterable
from typing import Any

import keras
from keras import ops

from keras_gdrn._checks import is_positive
from keras_gdrn.layers._arguments import check_options
from keras_gdrn.layers._calls import UnsupportedLayer, is_derivative_layer
from keras_gdrn.layers._on_grid import GridRun
from keras_gdrn.layers._on_pixels import OnPixels
from keras_gdrn.layers._plan import Plan
from keras_gdrn.layers.gauss_der_conv import GaussDerConv


@keras.saving.register_keras_serializable(package="keras_gdrn")
class ScaleChannels(keras.layers.Layer):
    """Applies one network, with one set of weights, at several initial scales.

    `{Γ_{σ_0}(f)}` for every `σ_0` in `sigma0`. Scale covariance says that `Γ_{σ_0}(f)`
    is `Γ_1(f(σ_0 ·))`: the image is sampled at points σ_0 apart, and from there on all
    scale channels are the same network. So any Keras layer in it, even a 3×3 `Conv2D`,
    is scale covariant. Batch normalization takes its statistics over all scale channels
    together.

    If the network ends in central selection, its maps are windows around the center, as
    large as the scores need them. Maps that the network itself returns are interpolated
    at the pixels.

    Source: Perzanowski & Lindeberg, Eqs. sigma0-multichan and
    complete-multi-net-definition.

    Args:
        network: Any Keras layer or model with one input and one output tensor,
            typically a scale channel that ends in `SpatialSelection`. Without a
            spatial selection its maps come out at every scale, as
            `(batch, scale, *spatial, channels)`.
        sigma0: Initial scales σ_0, positive and finite, in pixels; at least one.
        density: Samples per σ. A map of scale σ has the largest step, a power of two
            of σ_0, up to σ_0 σ / density. `None` evaluates the network as the paper
            does: whole maps at every pixel, each `GaussDerConv` at the scale `σ_0 σ`,
            every other layer as it is.
        receptive_field: Half-width of the windows, in standard deviations of the
            effective receptive field; `None` for whole maps. At the input of a layer,
            this deviation is `σ_0 √(Σ σ²)` over that layer and all that follow; the
            last one counts twice.

    Input shape:
        `(batch, …)`, as the network takes it.

    Output shape:
        `(batch, scale, …)`, scales in the order of `sigma0`.

    Raises:
        ValueError: If `density` or `receptive_field` is out of its range; if `sigma0`
            is empty or holds a value that is not finite and positive; if a layer is
            wider than its maps at one of the scales (found when `ScaleChannels` is
            built or applied to a `keras.Input`); if the network has been built for
            inputs of another shape, or has a layer that cannot be evaluated on grids;
            or if one `ScaleChannels` is applied inside another.

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
        receptive_field: float | None = 2.5,
        **kwargs,
    ):
        check_options(self, ScaleChannels, kwargs)
        super().__init__(**kwargs)
        if not isinstance(network, keras.layers.Layer):
            raise ValueError(
                "`network` must be a Keras layer or model. "
                f"Received: network={network!r} of type {type(network).__name__}"
            )
        _check_single(getattr(network, "outputs", None), network)
        self.network = network
        self.sigma0 = _checked_scales(sigma0)
        self.density = _checked("density", density, "samples per sigma")
        self.receptive_field = _checked(
            "receptive_field", receptive_field, "standard deviations"
        )
        if _has(network, ScaleChannels):
            raise ValueError(
                "`ScaleChannels` cannot be nested in another `ScaleChannels`. "
                f"Received: network={network.name!r}, which applies one, for "
                f"sigma0={self.sigma0}"
            )

    def build(self, input_shape):
        input_shape = tuple(input_shape)
        if not self.network.built:
            self.network.build(_build_shape(self.network, input_shape))
        self._check_network_takes(input_shape)
        self.plan: Any = None  # the grids of the maps
        self._on_pixels: Any = None
        if self.density is None:
            self._on_pixels = self._evaluation(OnPixels, input_shape)
            self._warn_unless_scaled()
        else:
            how = self.density, self.receptive_field
            self.plan = self._evaluation(Plan, input_shape, *how)
        self._layers_when_built = self._network_layers()

    def call(self, inputs, training=None):
        if self._network_layers() != self._layers_when_built:
            raise ValueError(
                "`network` must not change once it is built: make a new "
                "`ScaleChannels` of it. Received: network="
                f"{self.network.name!r}, whose layers have changed"
            )
        # A TensorFlow variable lacks some attributes of a tensor.
        inputs, scales = ops.convert_to_tensor(inputs), self.sigma0
        if self.plan is None:
            outputs = self._on_pixels(inputs, scales, training)
        else:
            outputs = GridRun(self.plan, scales, training)(inputs)
            if self.plan.result.is_map:
                return ops.stack(outputs, axis=1)
        return _scales_apart(outputs, len(scales))

    def _evaluation(self, kind, input_shape: tuple, *how):
        """The evaluation of the network, on grids or on the pixels."""
        try:
            evaluation = kind(self.network, input_shape, *how)
            evaluation.check_sizes(self.sigma0)
        except UnsupportedLayer as reason:
            instead = " `density=None` evaluates it on the pixels." * bool(how)
            raise ValueError(
                f"The network {self.network.name!r} cannot be evaluated at several "
                f"scales: {reason}.{instead} Received: density={self.density}"
            ) from None
        return evaluation

    @property
    def layers(self) -> list:
        """The layers that `summary(expand_nested=True)` shows."""
        return [self.network]

    def __dir__(self):
        # Keras saves the weights of what is listed, and `network` is listed already.
        return [name for name in super().__dir__() if name != "layers"]

    def _network_layers(self) -> list[int]:
        return [id(layer) for layer in self.network._flatten_layers()]

    def _check_network_takes(self, input_shape: tuple) -> None:
        expected = _built_for(self.network, len(input_shape))
        pairs = zip(expected, input_shape, strict=False)
        takes = [None in (known, given) or known == given for known, given in pairs]
        channels_first = _channels_first(self.network)
        channels = takes[1 if channels_first else -1]
        if len(expected) != len(input_shape) or not channels:
            raise ValueError(
                f"`network` was built for inputs of shape {expected}: others must have "
                "as many dimensions and channels. "
                f"Received: network={self.network.name!r}, input_shape={input_shape}"
            )

    def _warn_unless_scaled(self) -> None:
        layers = self.network._flatten_layers()
        packages = {type(layer).__module__.partition(".")[0] for layer in layers}
        # What a custom layer does at a scale is not known.
        if packages <= {"keras", "keras_gdrn"} and not _has(self.network, GaussDerConv):
            warnings.warn(
                "`ScaleChannels` changes the scale of Gaussian derivative layers, and "
                f"its network {self.network.name!r} has none: its output is the same "
                "at each initial scale.",
                stacklevel=2,
            )

    def compute_output_shape(self, input_shape):
        batch, *rest = self.network.compute_output_shape(input_shape)
        return (batch, len(self.sigma0), *rest)

    def compute_output_spec(self, inputs, training=None):
        # The network decides the dtype too: its last layer may have its own policy.
        output = self.network.compute_output_spec(inputs)
        _check_single(output, self.network)
        batch, *rest = output.shape
        return keras.KerasTensor((batch, len(self.sigma0), *rest), output.dtype)

    def get_config(self):
        config = super().get_config()
        config["network"] = _serialized(self.network)
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


def _serialized(network) -> dict:
    """The network's configuration, marked as shared when Keras saves it to a file.

    Keras sets the mark when it serializes an object for the second time. This happens
    here at once, because this configuration is copied before the next time.
    """
    config = keras.saving.serialize_keras_object(network)
    keras.saving.serialize_keras_object(network)
    return config


def _check_single(outputs, network) -> None:
    """Refuses several outputs, if they are known yet."""
    count = len(keras.tree.flatten(outputs)) if outputs is not None else 1
    if count != 1:
        raise ValueError(
            "`network` must have one output: make a `ScaleChannels` for each, of "
            "`keras.Model(network.inputs, network.outputs[i])`, which share their "
            f"weights. Received: network={network.name!r} with {count} outputs"
        )


def _has(network, kind: type) -> bool:
    """Whether the network, or a layer anywhere in it, is of this kind."""
    return any(isinstance(layer, kind) for layer in network._flatten_layers())


def _built_for(network, rank: int) -> tuple:
    """Shape of the inputs of a network that has been built, as far as it is known."""
    shape = getattr(network, "input_shape", None)  # a model's
    if shape is not None:
        return shape
    spec = keras.tree.flatten(network.input_spec or keras.InputSpec())[0]
    rank = spec.ndim or rank
    sizes = {axis % rank: size for axis, size in spec.axes.items()}
    return tuple(sizes.get(axis) for axis in range(rank))


def _build_shape(network, input_shape: tuple) -> tuple:
    """The shape to build with, without sizes if the layer would refuse a large σ."""
    if not is_derivative_layer(network):
        return input_shape
    unknown = (None,) * (len(input_shape) - 2)
    if _channels_first(network):
        return (*input_shape[:2], *unknown)
    return (input_shape[0], *unknown, input_shape[-1])


def _channels_first(network) -> bool:
    found = (getattr(layer, "data_format", None) for layer in network._flatten_layers())
    return "channels_first" in found


def _scales_apart(outputs, scales: int):
    # -1 stands for the batch: the other sizes are known from the network.
    outputs = ops.reshape(outputs, (scales, -1, *ops.shape(outputs)[1:]))
    return ops.swapaxes(outputs, 0, 1)


def _checked_scales(sigma0) -> tuple[float, ...]:
    scales = tuple(sigma0) if isinstance(sigma0, Iterable) else ()
    if not scales or not all(is_positive(scale) for scale in scales):
        raise ValueError(
            "`sigma0` must be a non-empty sequence of finite, positive numbers. "
            f"Received: sigma0={sigma0!r}"
        )
    return tuple(float(scale) for scale in scales)


def _checked(name: str, value, unit: str) -> float | None:
    if value is not None and not is_positive(value):
        raise ValueError(
            f"`{name}` must be a finite, positive number of {unit}, or None. "
            f"Received: {name}={value!r}"
        )
    return None if value is None else float(value)
