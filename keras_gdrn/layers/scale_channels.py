import warnings
from collections.abc import Iterable

import keras
from keras import ops

from keras_gdrn._checks import check_choice, check_reach, is_positive
from keras_gdrn.layers._arguments import check_options
from keras_gdrn.layers._calls import UnsupportedLayer
from keras_gdrn.layers._on_grid import GridRun
from keras_gdrn.layers._plan import Plan
from keras_gdrn.layers._receptive_field import Course, SeesMore, in_mode
from keras_gdrn.layers._scale_scope import scale_scope
from keras_gdrn.layers._windows import Accuracy, Windows, extent_of, tolerance_of
from keras_gdrn.layers.gauss_der_conv import GaussDerConv

# By name: windows of 2.5 standard deviations, and all that the layers give.
TOLERANCES = {"fast": tolerance_of(2.5), "exact": 0.0}

# Half-width of the windows in standard deviations; `None` for whole maps, or "auto".
Extent = float | str | None


@keras.saving.register_keras_serializable(package="keras_gdrn")
class ScaleChannels(keras.layers.Layer):
    """Applies one network, with one set of weights, at several initial scales.

    `{Γ_{σ_0}(f)}` for every `σ_0` in `sigma0`: the scale of each `GaussDerConv` in the
    network is multiplied by `σ_0`; every other layer is applied as it is. The network
    runs once on all scale channels, so that batch normalization takes its statistics
    over all of them together: in training as in inference the network is the same
    function at each scale.

    Where the network ends in central selection, its maps are evaluated only where the
    answer sees them: within `receptive_field` standard deviations of the effective
    receptive field around the center, a window that grows with `σ_0`. Around a window
    lies its mirror image; only at the edge of the image itself does the boundary rule
    of the layers hold. Batch statistics are those of the windows.

    Source: Perzanowski & Lindeberg, Eqs. sigma0-multichan and
    complete-multi-net-definition.

    Args:
        network: Any Keras layer or model with one input and one output tensor,
            typically a scale channel that ends in `SpatialSelection`. Without a
            spatial selection its maps come out at every scale, as
            `(batch, scale, *spatial, channels)`.
        sigma0: Initial scales σ_0, positive and finite, in pixels; at least one.
        receptive_field: Half-width of the windows, in standard deviations of the
            effective receptive field: for the input of a layer `σ_0 √(Σ σ²)` over that
            layer and those that follow, of which the last counts twice. `None`
            evaluates whole maps, as the paper does. `"auto"` takes what the tolerance
            allows where that can be done: where the network ends in central selection,
            and its other layers act at each position or are layers of this package,
            whose scales are not learned; otherwise `None`.
        subpixel: Whether channels with `σ_0 < 1` look between the pixels: they take
            their kernels from a grid of step `σ_0`, on which these are those that
            σ_0 = 1 has on the pixels, and the maps are interpolated there (see
            `kernels.gaussian_derivative`). On an image of half the size the channel
            σ_0 = 1/2 then gives more nearly what σ_0 = 1 gives on the whole one.
            `False` is the paper's discretization.
        tolerance: Share of the influence on the answer, relative to that of the
            center, that may be left out, in (0, 0.5). From it follow the windows, the
            least relative tolerance of the layers' operators, and how finely coarse
            maps are sampled (docs/how_a_layer_is_evaluated.md). `"fast"` is 0.044,
            windows of 2.5 standard deviations; `"exact"` evaluates whole maps at every
            pixel, by the `epsilon` of each layer, for comparisons with the paper.
            `None` is what `receptive_field` leaves out, if it is given; `"exact"` for
            a network that gives maps, whose error nothing coarser hides; else `"fast"`.
        density: Samples per σ of the evaluation on grids: each channel samples the
            image at points σ_0 apart, and all channels then are one network with the
            same operators, so that any Keras layer in it is scale covariant. A map of
            scale σ has the largest step, a power of two of σ_0, up to σ_0 σ / density.
            `subpixel` has no effect, since grids lie between the pixels as they are,
            and image sizes must be known. `None` scales the kernels on the pixels.

    Input shape:
        `(batch, …)`, what the network takes.

    Output shape:
        `(batch, scale, …)`, scales in the order of `sigma0`.

    Raises:
        ValueError: If `tolerance` or `density` is out of its range; if both are given;
            if `sigma0` is empty or holds a value that is not finite and positive, or at
            which a layer is wider than its maps, which is told when the layer is built
            or applied to a `keras.Input`; if the network has been built for inputs of
            another shape; if `receptive_field` is a number and the network has a layer
            that cannot work on windows; if `subpixel` is neither `True` nor `False`;
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
        receptive_field: Extent = "auto",
        subpixel: bool = False,
        tolerance: float | str | None = None,
        density: float | None = None,
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
        self.receptive_field = _checked_receptive_field(receptive_field)
        self.subpixel = check_choice("subpixel", subpixel, (False, True))
        self.tolerance = _checked_tolerance(tolerance)
        self.density = _checked_density(density)
        if density is not None and tolerance is not None:
            raise ValueError(
                "`density` and `tolerance` belong to different evaluations: give one "
                f"of them. Received: density={density!r}, tolerance={tolerance!r}"
            )
        if _has(network, ScaleChannels):
            raise ValueError(
                "`ScaleChannels` cannot be nested in another `ScaleChannels`. "
                f"Received: network={network.name!r}, which applies one, for "
                f"sigma0={self.sigma0}"
            )

    def build(self, input_shape):
        if not self.network.built:
            with scale_scope(self.sigma0, self.subpixel, building=True):
                self.network.build(input_shape)
        self._plan = None
        if self.density is not None:
            self._plan = self._on_grids(tuple(input_shape), self.density)
            self._course, self._built_of = None, self._network_layers()
            return
        self._course, self._accuracy = self._planned(len(input_shape))
        if self._course is not None:  # the maps of all layers are as large as the image
            self._check_network_takes(tuple(input_shape), self._course.channel_axis)
            first = 2 if self._course.channels_first else 1
            spatial = input_shape[first : first + len(input_shape) - 2]
            for call in self._course.calls:
                for sigma in call.sigmas:
                    check_reach(max(self.sigma0) * sigma, spatial)
        self._warn_unless_scaled()
        self._built_of = self._network_layers()

    def call(self, inputs, training=None):
        if self._network_layers() != self._built_of:
            raise ValueError(
                "`network` must not change once it is built. Received: network="
                f"{self.network.name!r}, whose layers are others now: make another "
                "`ScaleChannels` of it."
            )
        # A variable of TensorFlow's has not all that a tensor has.
        return self._at(ops.convert_to_tensor(inputs), self.sigma0, training)

    def _at(self, inputs, sigma0: tuple[float, ...], training):
        """`(batch, scale, …)` at these initial scales."""
        if self._plan is not None:
            outputs = GridRun(self._plan, sigma0, training)(inputs)
            if self._plan.result.is_map:
                return ops.stack(outputs, axis=1)
            return _scales_apart(outputs, len(sigma0))
        with scale_scope(sigma0, self.subpixel):
            if self._course is None:
                folded = ops.concatenate([inputs] * len(sigma0), axis=0)
                outputs = self.network(folded, **in_mode(self.network, training))
                _check_single(outputs, self.network)
                return _scales_apart(outputs, len(sigma0))
            return self._on_packed_maps(inputs, sigma0, training, self._course)

    def _on_packed_maps(self, images, sigma0, training, course: Course):
        """What the answer sees, of all scales one behind the other (see `_windows`)."""
        if course.channels_first:
            images = ops.moveaxis(images, 1, -1)
        spatial = tuple(ops.shape(images)[1:-1])
        windows = Windows(spatial, sigma0, self.subpixel, self._accuracy)
        outputs = course.run(images, windows, training)
        if not course.result.is_map:
            return _scales_apart(outputs, len(sigma0))
        maps = ops.moveaxis(ops.stack(outputs), -2, 0)
        return ops.moveaxis(maps, -1, 2) if course.channels_first else maps

    def _on_grids(self, input_shape: tuple, density: float) -> Plan:
        field = self.receptive_field
        extent = 2.5 if isinstance(field, str) else field
        if None in input_shape[1:]:
            raise ValueError(
                "`density` needs images of a known size; `density=None` takes any. "
                f"Received: input_shape={input_shape}"
            )
        try:
            plan = Plan(self.network, input_shape, density, extent)
            plan.check_sizes(self.sigma0)
        except UnsupportedLayer as reason:
            raise ValueError(
                f"The network {self.network.name!r} cannot be evaluated on grids: "
                f"{reason}. `density=None` evaluates it on the pixels. "
                f"Received: density={self.density}"
            ) from None
        self._check_network_takes(input_shape, plan.channel_axis)
        return plan

    def convolutions(self, spatial: tuple[int, ...]):
        """What is evaluated of images of this size, for pictures and tests.

        Yields:
            Each Gaussian derivative convolution, with the `Windows` of its input and of
            its output. None if the network is applied to whole, folded maps.
        """
        if self._course is not None:
            windows = Windows(spatial, self.sigma0, self.subpixel, self._accuracy)
            yield from self._course.convolutions(windows)

    @property
    def layers(self) -> list:
        """What `summary(expand_nested=True)` shows."""
        return [self.network]

    def __dir__(self):
        # Of what is listed Keras saves the weights: those of the network once.
        return [name for name in super().__dir__() if name != "layers"]

    def _network_layers(self) -> list[int]:
        return [id(layer) for layer in self.network._flatten_layers()]

    def _check_network_takes(self, input_shape: tuple, channel_axis: int) -> None:
        expected = _built_for(self.network, len(input_shape))
        if len(expected) != len(input_shape) or expected[channel_axis] not in (
            None,
            input_shape[channel_axis],
        ):
            raise ValueError(
                f"`network` has been built for inputs of the shape {expected}: others "
                "must have as many dimensions and channels. "
                f"Received: network={self.network.name!r}, input_shape={input_shape}"
            )

    def _warn_unless_scaled(self) -> None:
        layers = self.network._flatten_layers()
        packages = {type(layer).__module__.partition(".")[0] for layer in layers}
        # What a layer of one's own does at a scale is not known.
        if packages <= {"keras", "keras_gdrn"} and not _has(self.network, GaussDerConv):
            warnings.warn(
                "`ScaleChannels` changes the scale of Gaussian derivative layers, and "
                f"its network {self.network.name!r} has none: at each initial scale it "
                "gives the same.",
                stacklevel=2,
            )

    def _planned(self, rank: int) -> tuple[Course | None, Accuracy]:
        """The network call by call if it can do with packed maps, and how exactly."""
        explicit = self.receptive_field not in (None, "auto")
        field = self.receptive_field if explicit or self.tolerance != "exact" else None
        course, central = None, field is not None
        try:
            course = Course(self.network, rank)
            if central:
                course.check_central()
        except SeesMore as reason:
            if explicit:
                raise ValueError(
                    "`receptive_field` takes a network that ends in central selection "
                    "and whose other layers act at each position or are layers of "
                    f"this package, but {reason}. Whole maps are evaluated with "
                    f"`receptive_field=None`. Received: network={self.network.name!r}, "
                    f"receptive_field={self.receptive_field!r}"
                ) from None
            central = False
        # Maps that the network gives are anyone's, and nothing coarser hides an error.
        maps = course is None or course.result.is_map
        return course, self._accuracy_of(central, maps)

    def _accuracy_of(self, central: bool, maps: bool) -> Accuracy:
        field, tolerance = self.receptive_field, self.tolerance
        extent = None if isinstance(field, str) else field
        if tolerance is None:
            windows = "fast" if extent is None else tolerance_of(extent)
            tolerance = "exact" if maps or field is None else windows
        if isinstance(tolerance, str):
            tolerance = TOLERANCES[tolerance]
        if not central:
            return Accuracy(tolerance)
        return Accuracy(tolerance, extent or extent_of(tolerance))

    def compute_output_shape(self, input_shape):
        batch, *rest = self.network.compute_output_shape(input_shape)
        return (batch, len(self.sigma0), *rest)

    def compute_output_spec(self, inputs, training=None):
        # The network decides the dtype too: its last layer may have its own policy.
        output = self.network.compute_output_spec(inputs)
        _check_single(output, self.network)
        if self._course is None and None not in inputs.shape[1:]:
            self._try(inputs)
        batch, *rest = output.shape
        return keras.KerasTensor((batch, len(self.sigma0), *rest), output.dtype)

    def _try(self, inputs) -> None:
        """Raises what the layers would at the first batch, at every scale."""
        try:
            keras.Operation.compute_output_spec(self, inputs)
        except Exception as error:
            # Keras takes it for a mistake in `call`.
            raise (error.__context__ or error) from None

    def get_config(self):
        config = super().get_config()
        config["network"] = keras.saving.serialize_keras_object(self.network)
        config["sigma0"] = list(self.sigma0)
        config["receptive_field"] = self.receptive_field
        config["subpixel"] = self.subpixel
        config["tolerance"] = self.tolerance
        config["density"] = self.density
        return config

    @classmethod
    def from_config(cls, config):
        network = keras.saving.deserialize_keras_object(config.pop("network"))
        # What was saved before there were windows was trained on whole maps.
        config.setdefault("receptive_field", None)
        return cls(network, **config)


def _check_single(outputs, network) -> None:
    """Of a network whose outputs are known: several have maps of several kinds."""
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


def _checked_receptive_field(value) -> Extent:
    if value is None or (isinstance(value, str) and value == "auto"):
        return value
    if not is_positive(value):
        raise ValueError(
            "`receptive_field` must be a finite, positive number of standard "
            "deviations, None for whole maps, or 'auto'. "
            f"Received: receptive_field={value!r}"
        )
    return float(value)


def _checked_density(value) -> float | None:
    if value is not None and not is_positive(value):
        raise ValueError(
            "`density` must be a finite, positive number of samples per sigma, or "
            f"None. Received: density={value!r}"
        )
    return None if value is None else float(value)


def _checked_tolerance(value) -> float | str | None:
    if value is None or (isinstance(value, str) and value in TOLERANCES):
        return value
    if isinstance(value, str) or not is_positive(value) or value >= 0.5:
        raise ValueError(
            "`tolerance` must be a number in (0, 0.5), 'fast', 'exact', or None. "
            f"Received: tolerance={value!r}"
        )
    return float(value)
