"""Training as in the paper: recipes, augmentation, and runs that can be resumed."""

from ._augment import Augmentation, augment
from ._batches import evaluation_batches, training_batches
from ._devices import on_devices
from ._fit import fit
from ._lock import lock_folder
from ._processes import from_first_process, is_first_process
from ._recipe import Recipe
from ._recipes import RECIPES
from ._run_folder import claim_folder
from ._stages import Stage, train_in_stages
from ._time_limit import OutOfTime, TimeLimit

__all__ = [
    "RECIPES",
    "Augmentation",
    "OutOfTime",
    "Recipe",
    "Stage",
    "TimeLimit",
    "augment",
    "claim_folder",
    "evaluation_batches",
    "fit",
    "from_first_process",
    "is_first_process",
    "lock_folder",
    "on_devices",
    "train_in_stages",
    "training_batches",
]
