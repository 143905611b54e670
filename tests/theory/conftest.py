"""One thread for the small matrices of SciPy and NumPy in these tests.

The axis operators are decomposed by many small SVDs, in which a second BLAS thread
only waits; on a busy machine it makes them a hundred times slower.
"""

import pytest
from threadpoolctl import threadpool_limits


@pytest.fixture(scope="session", autouse=True)
def single_threaded_linear_algebra():
    with threadpool_limits(limits=1, user_api="blas"):
        yield
