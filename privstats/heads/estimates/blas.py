"""The number of BLAS threads: one, where there is a small problem for every class.

Matrices of a few hundred dimensions are too small to share: on a busy machine their threads wait for one another, and
the eigendecompositions of many classes take several times as long as with one thread each.

Heads that solve a problem per class give BLAS one thread. On a busy machine the threads of a small eigendecomposition
wait for one another, and a hundred and fifty of them take several times as long as with one thread each. Classes side
by side, one thread each, gained nothing on top.
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
