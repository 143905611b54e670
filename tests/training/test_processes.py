"""Which process decides; of two JAX processes, see `test_distribution.py`."""

import pytest

from keras_gdrn.training import from_first_process, is_first_process


def test_a_process_alone_is_the_first_one():
    assert is_first_process()
    assert from_first_process(lambda: 3) == 3


def test_its_errors_are_its_own():
    def fail():
        raise OSError("disk full")

    with pytest.raises(OSError, match="disk full"):
        from_first_process(fail)
