"""Training as in the paper: recipes, augmentation, and runs that can be resumed."""

from keras_gdrn.training._augment import Augmentation, augment
from keras_gdrn.training._devices import on_devices
from keras_gdrn.training._fit import fit
from keras_gdrn.training._recipe import RECIPES, Crossentropy, Recipe
from keras_gdrn.training._run_folder import claim_folder, lock_folder
from keras_gdrn.training._stages import Stage, train_in_stages

__all__ = [
    "RECIPES",
    "Augmentation",
    "Crossentropy",
    "Recipe",
    "Stage",
    "augment",
    "claim_folder",
    "fit",
    "lock_folder",
    "on_devices",
    "train_in_stages",
]
