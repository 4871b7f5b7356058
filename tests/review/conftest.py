"""The checker's tails of the normal distribution are computed once a process: a check spends three quarters there."""

from collections.abc import Iterator
from functools import cache

import pytest

from privstats.review import certificate_checker


@pytest.fixture(scope="session", autouse=True)
def tails() -> Iterator[None]:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(certificate_checker, "tail", cache(certificate_checker.tail))
        yield
