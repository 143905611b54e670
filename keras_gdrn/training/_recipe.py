"""How a network is trained, as a frozen dataclass."""

import dataclasses

import keras

from keras_gdrn._checks import check_number
from keras_gdrn.training._augment import Augmentation

# Weight decay is for what multiplies features.
NOT_DECAYED = ["bias", "gamma", "beta", "log_sigma"]


@dataclasses.dataclass(frozen=True)
class Recipe:
    """How `fit` trains: AdamW on the cross-entropy, its learning rate, augmentation.

    What regularizes inside the network, such as the dropout of scale channels, is a
    part of the network.

    The learning rate falls from `learning_rate` to `final_learning_rate` along half a
    cosine, in each step; before that, it rises linearly from a tenth of
    `learning_rate` for `warmup_epochs`, which count among the epochs.

    Source: Perzanowski & Lindeberg, Table training-parameters and Sec. 5.2.
    Departure: biases and the parameters of batch normalization are not decayed; the
    paper does not say whether they are.

    Args:
        epochs: Number of passes over the data.
        batch_size: Images in a batch; the last one of an epoch may be smaller.
        learning_rate: Highest learning rate.
        final_learning_rate: Learning rate at the end.
        warmup_epochs: Epochs during which the learning rate rises; of a shorter
            training, at most half of it.
        weight_decay: Weight decay of AdamW: a weight loses `learning_rate *
            weight_decay` of itself in each step.
        label_smoothing: Share of the label that is spread over all classes.
        augmentation: An `Augmentation`.

    Raises:
        ValueError: If a value is out of its range.
    """

    epochs: int
    batch_size: int
    learning_rate: float = 0.01
    final_learning_rate: float = 1e-5
    warmup_epochs: int = 0
    weight_decay: float = 0.025
    label_smoothing: float = 0.1
    augmentation: Augmentation = Augmentation()

    def __post_init__(self):
        check_number("epochs", self.epochs, whole=True, lowest=1)
        check_number("batch_size", self.batch_size, whole=True, lowest=1)
        check_number("warmup_epochs", self.warmup_epochs, whole=True)
        final = self.final_learning_rate
        check_number("final_learning_rate", final)
        check_number("learning_rate", self.learning_rate, lowest=final)
        check_number("weight_decay", self.weight_decay)
        check_number("label_smoothing", self.label_smoothing, highest=1)
        if not isinstance(self.augmentation, Augmentation):
            raise ValueError(
                "`augmentation` must be an `Augmentation`. "
                f"Received: augmentation={self.augmentation!r}"
            )

    def optimizer(self, steps_per_epoch: int) -> keras.optimizers.Optimizer:
        """AdamW with the learning rate's schedule, for epochs of so many steps."""
        optimizer = keras.optimizers.AdamW(
            self.schedule(steps_per_epoch),
            weight_decay=self.weight_decay,
            epsilon=1e-8,  # that of the authors' framework; Keras has 1e-7
        )
        optimizer.exclude_from_weight_decay(var_names=NOT_DECAYED)
        return optimizer

    def schedule(
        self, steps_per_epoch: int
    ) -> keras.optimizers.schedules.LearningRateSchedule:
        """The learning rate as a function of the step."""
        warmup = int(min(self.warmup_epochs, self.epochs / 2) * steps_per_epoch)
        start = {"initial_learning_rate": self.learning_rate}
        if warmup:
            start = {
                "initial_learning_rate": 0.1 * self.learning_rate,
                "warmup_target": self.learning_rate,
                "warmup_steps": warmup,
            }
        return keras.optimizers.schedules.CosineDecay(
            decay_steps=self.epochs * steps_per_epoch - warmup,
            alpha=self.final_learning_rate / self.learning_rate,
            **start,
        )

    def loss(self, classes: int = 2) -> keras.losses.Loss:
        """Cross-entropy with smoothed labels.

        Args:
            classes: Number of outputs of the model. For 1, labels are zeros and ones,
                else one-hot.
        """
        kind = (
            keras.losses.BinaryCrossentropy
            if classes == 1
            else keras.losses.CategoricalCrossentropy
        )
        return kind(from_logits=True, label_smoothing=self.label_smoothing)
