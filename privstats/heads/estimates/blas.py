"""How many threads linear algebra gets: one, where there is a small problem for every class.

No problem itself. Matrices of a few hundred dimensions are too small to share: on a busy machine BLAS threads that wait
for one another made 150 eigendecompositions take ten times as long. Classes side by side gained nothing on top.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from threadpoolctl import threadpool_limits

__all__ = ["one_blas_thread"]


@contextmanager
def one_blas_thread() -> Iterator[None]:
    """BLAS with one thread, in the whole process and until the block or the decorated function ends."""
    with threadpool_limits(1, user_api="blas"):
        yield
