import math

import keras
from keras import ops

from keras_gdrn import kernels
from keras_gdrn._checks import (
    check_choice,
    check_epsilon,
    check_positive,
    check_positive_integer,
    check_reach,
)
from keras_gdrn.layers._arguments import (
    check_data_format,
    check_floating_point,
    check_no_convolution_options,
    check_options,
    check_rank,
    cloned,
)
from keras_gdrn.layers._convolution import convolved_on_pixels

_CONFIG_KEYS = (
    *("filters", "sigma", "order", "zero_order", "separable", "trainable_sigma"),
    *("boundary", "epsilon", "use_bias", "data_format"),
)
OPTIONS_OF_WEIGHTS = [
    f"{role}_{kind}"
    for role in ("kernel", "bias")
    for kind in ("initializer", "regularizer", "constraint")
]


@keras.saving.register_keras_serializable(package="keras_gdrn")
class GaussDerConv(keras.layers.Layer):
    """Convolution with learned combinations of Gaussian derivatives at one scale.

    `y = activation(Σ_α m(α) C_α σ^|α| (δ^α T(·; σ)) * x + b)`, with learned `C_α`
    (channels × filters for each multi-index `1 <= |α| <= order`) and bias `b`. The
    output has the size of the input. Inside `ScaleChannels` the scale is `σ_0 sigma`.

    `separable=True` learns one jet filter and bias per input channel, followed by a
    1×…×1 convolution (Sec. Depthwise-separable).

    Source: Perzanowski & Lindeberg, Eqs. gauss-der-layer and disc-gauss+central-diff;
    `C_α` counted as in Eq. gauss-der-layer. Departure: the kernels are not truncated.
    Wide kernels are evaluated by few coefficients, with a relative error of at most
    `2 epsilon` in the spectral norm; for those on grids, see `ScaleChannels`.

    Args:
        filters: Number of output channels.
        sigma: Scale σ, the standard deviation in pixels of the layer's input.
        order: Highest total order of differentiation `N`, at least 1.
        zero_order: Whether the smoothed input itself, α = 0, is part of the jet.
        separable: Whether to learn one filter per channel, then mix channels.
        trainable_sigma: Whether σ is learned, from the initial value `sigma`.
        boundary: `"zero"` outside the image, or `"symmetric"` (half-sample mirror).
        epsilon: Relative tolerance of wide kernels on the pixels, in (0, 1).
        activation: Activation function, its name, or `None`.
        use_bias: Whether a bias is added.
        data_format: `"channels_last"`, `"channels_first"`, or `None` for Keras' own
            setting.
        kernel_initializer, bias_initializer: As in Keras' convolutions. In a separable
            layer they apply to both stages, as do regularizers and constraints of these
            weights.
        kernel_regularizer, bias_regularizer, activity_regularizer: As in Keras'
            convolutions.
        kernel_constraint, bias_constraint: As in Keras' convolutions.

    Input shape:
        `(batch, *spatial, channels)` with one, two or three spatial dimensions of any
        size, known or not; `(batch, channels, *spatial)` for `"channels_first"`.

    Output shape:
        The input's, with `filters` channels.

    Raises:
        ValueError: If an argument is out of its range, the dtype is not a floating
            point type, the input has another rank, an unknown number of channels, or
            is smaller than `sigma` along every axis.

    Example:

    >>> image = keras.Input((64, 64, 3))
    >>> GaussDerConv(48, sigma=1.2, activation="relu")(image).shape
    (None, 64, 64, 48)
    """

    def __init__(
        self,
        filters,
        sigma,
        order=2,
        zero_order=False,
        separable=False,
        trainable_sigma=False,
        boundary="zero",
        epsilon=1e-3,
        activation=None,
        use_bias=True,
        data_format=None,
        kernel_initializer="he_uniform",
        bias_initializer="zeros",
        kernel_regularizer=None,
        bias_regularizer=None,
        activity_regularizer=None,
        kernel_constraint=None,
        bias_constraint=None,
        **kwargs,
    ):
        check_no_convolution_options(type(self).__name__, kwargs)
        check_options(self, GaussDerConv, kwargs)
        super().__init__(activity_regularizer=activity_regularizer, **kwargs)
        self.filters = check_positive_integer("filters", filters)
        self.sigma = check_positive("sigma", sigma)
        self.order = check_positive_integer("order", order)
        self.zero_order = zero_order
        self.separable = separable
        self.trainable_sigma = trainable_sigma
        self.boundary = check_choice("boundary", boundary, kernels.BOUNDARIES)
        self.epsilon = check_epsilon(epsilon)
        self.activation = keras.activations.get(activation)
        self.use_bias = use_bias
        self.data_format = check_data_format(data_format)
        self.kernel_initializer = keras.initializers.get(kernel_initializer)
        self.bias_initializer = keras.initializers.get(bias_initializer)
        self.kernel_regularizer = keras.regularizers.get(kernel_regularizer)
        self.bias_regularizer = keras.regularizers.get(bias_regularizer)
        self.kernel_constraint = keras.constraints.get(kernel_constraint)
        self.bias_constraint = keras.constraints.get(bias_constraint)
        check_floating_point(self)

    def build(self, input_shape):
        check_rank(type(self).__name__, input_shape)
        sizes = list(input_shape)
        channel_axis = -1 if self.data_format == "channels_last" else 1
        channels = sizes.pop(channel_axis)
        if channels is None:
            raise ValueError(
                "The number of channels must be known when the layer is built. "
                f"Received: input_shape={tuple(input_shape)}, {self.data_format}"
            )
        _, *spatial = sizes
        check_reach(self.sigma, spatial)
        self.indices = kernels.multi_indices(len(spatial), self.order, self.zero_order)
        self.input_spec = keras.InputSpec(
            ndim=len(input_shape), axes={channel_axis: channels}
        )
        jet = len(self.indices)
        if self.separable:
            self.depthwise_kernel = self._add_kernel("depthwise_kernel", jet, channels)
            self.kernel = self._add_kernel("pointwise_kernel", channels, self.filters)
            self.depthwise_bias = self._add_bias("depthwise_bias", channels)
        else:
            self.kernel = self._add_kernel("kernel", jet, channels, self.filters)
        self.bias = self._add_bias("bias", self.filters)
        if self.trainable_sigma:
            self.log_sigma = self.add_weight(
                name="log_sigma",
                shape=(),
                initializer=keras.initializers.Constant(math.log(self.sigma)),
                autocast=False,
            )

    @property
    def current_sigma(self):
        """σ as learned so far, a tensor; a number if it is not learned."""
        return ops.exp(self.log_sigma) if self.trainable_sigma else self.sigma

    def call(self, inputs, sigma0=(1.0,)):
        """Convolves maps of one initial scale after another, from `ScaleChannels`."""
        x = ops.cast(inputs, self.compute_dtype)
        if self.data_format == "channels_first":
            x = ops.moveaxis(x, 1, -1)
        y = self.activation(self.convolved(x, sigma0))
        return ops.moveaxis(y, -1, 1) if self.data_format == "channels_first" else y

    def convolved(self, x, sigma0=(1.0,)):
        """As `call`, with the channels last, and without activation."""
        parts = ops.split(x, len(sigma0)) if len(sigma0) > 1 else [x]
        maps = [
            convolved_on_pixels(self, part, scale)
            for part, scale in zip(parts, sigma0, strict=True)
        ]
        return ops.concatenate(maps) if len(maps) > 1 else maps[0]

    def compute_output_shape(self, input_shape):
        if self.data_format == "channels_last":
            return (*input_shape[:-1], self.filters)
        return (input_shape[0], self.filters, *input_shape[2:])

    def get_config(self):
        config = super().get_config()
        config |= {name: getattr(self, name) for name in _CONFIG_KEYS}
        for name in ("activation", *OPTIONS_OF_WEIGHTS, "activity_regularizer"):
            serialize = getattr(keras, f"{name.split('_')[-1]}s").serialize
            config[name] = serialize(getattr(self, name))
        return config

    def _add_kernel(self, name: str, *shape: int):
        return self.add_weight(
            name=name,
            shape=shape,
            initializer=cloned(self.kernel_initializer),
            regularizer=self.kernel_regularizer,
            constraint=self.kernel_constraint,
        )

    def _add_bias(self, name: str, size: int):
        if not self.use_bias:
            return None
        return self.add_weight(
            name=name,
            shape=(size,),
            initializer=self.bias_initializer,
            regularizer=self.bias_regularizer,
            constraint=self.bias_constraint,
        )
