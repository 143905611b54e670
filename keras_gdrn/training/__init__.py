"""Training as in the paper: recipes, augmentation, and runs that can be resumed."""

from ._augment import Augmentation, augment
from ._batches import evaluation_batches, training_batches
from ._devices import on_devices
from ._fit import fit
from ._recipe import Recipe
from ._recipes import RECIPES
from ._run_folder import claim_folder
from ._stages import OutOfTime, Stage, train_in_stages

__all__ = [
    "RECIPES",
    "Augmentation",
    "OutOfTime",
    "Recipe",
    "Stage",
    "augment",
    "claim_folder",
    "evaluation_batches",
    "fit",
    "on_devices",
    "train_in_stages",
    "training_batches",
]
