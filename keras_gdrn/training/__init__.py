"""Training as in the paper: recipes, augmentation, and runs that can be resumed."""

from ._augment import Augmentation, augment
from ._fit import fit
from ._recipe import Recipe
from ._recipes import RECIPES
from ._run_folder import claim_folder

__all__ = ["RECIPES", "Augmentation", "Recipe", "augment", "claim_folder", "fit"]
