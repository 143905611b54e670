"""Synthetic scenes: whole objects that do not touch, of the sizes asked for."""

import numpy as np
import pytest

from keras_gdrn.data import SHAPES, Shape, centered_shapes, random_scenes


def test_objects_are_whole_apart_and_brighter():
    made = random_scenes(20, [10, 20], seed=0)
    assert made.images.shape == (20, 64, 64, 1) and made.images.dtype == np.float32
    assert made.images.min() >= 0 and made.images.max() <= 1
    assert {shape.size for scene in made.objects for shape in scene} == {10, 20}
    assert {shape.kind for scene in made.objects for shape in scene} == {0, 1, 2}
    for image, mask, scene in zip(made.images, made.masks(), made.objects, strict=True):
        assert mask.sum(-1).max() == 1  # no two on one pixel
        assert not mask[[0, -1]].any() and not mask[:, [0, -1]].any()
        inside = mask.any(-1)
        assert image[inside].min() > image[~inside].mean() + 0.1
        for shape in scene:
            assert mask[round(shape.row), round(shape.column), shape.kind] == 1
    same, other = (random_scenes(20, [10, 20], seed=s).images for s in (0, 1))
    np.testing.assert_array_equal(made.images, same)
    assert not np.array_equal(made.images, other)


@pytest.mark.parametrize("kind", range(len(SHAPES)))
def test_shapes_grow_with_the_size(kind):
    small, large = (Shape(kind, 31.5, 31.5, s).mask(64).sum() for s in (16, 32))
    assert large == pytest.approx(4 * small, rel=0.1)


def test_a_centered_shape_is_in_the_center():
    made = centered_shapes(30, 18, seed=1, canvas=40)
    assert {shape.kind for (shape,) in made.objects} == {0, 1, 2}
    assert all(abs(s.row - 20) <= 1 and s.size == 18 for (s,) in made.objects)
    rows = (made.masks().sum(-1) * np.arange(40)[:, None]).sum((1, 2))
    centers = rows / made.masks().sum((1, 2, 3))
    np.testing.assert_allclose(centers, [s.row for (s,) in made.objects], atol=0.5)
