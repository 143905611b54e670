"""A space of networks that train in no time."""

from keras_gdrn.tuning import SearchSpace

TINY = SearchSpace(
    ratio=(1.3, 1.5),
    blocks=(1,),
    stem_width=(2,),
    width=(2, 3),
    order=(2,),
    sigma0_spacing=(2.0,),
    sigma0_range=(0.5, 1.0),
    batch_size=(8,),
)
