"""Training as in the paper: recipes, augmentation, and runs that can be resumed."""

from ._augment import Augmentation, augment
from ._fit import fit
from ._recipe import Recipe
from ._recipes import RECIPES

__all__ = ["RECIPES", "Augmentation", "Recipe", "augment", "fit"]
