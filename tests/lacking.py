"""Tests of what is not installed are skipped: an extra's absence is no failure of the library.

Loaded by ``conftest``. An import must have failed, of an absent package that no plain installation has.
"""

import importlib.util
from collections.abc import Iterator
from contextlib import contextmanager

import pytest

from privstats import optional_dependencies
from tests import without

_DEVELOPMENT = (
    *("mpmath", "opendp", "pandas", "mypy", "ruff", "grimp", "importlinter", "sphinx", "hatchling"),
    *("yaml", "reuse", "cyclonedx_py", "dp_accounting"),
)
_OPTIONAL = frozenset(optional_dependencies._INSTALL) | frozenset(_DEVELOPMENT)


def needs(package: str) -> None:
    """Skip the test where ``package`` is absent: for tests that run it in a process of its own."""
    if _lacks(package):
        pytest.skip(f"{package} is not installed")


def _lacks(package: str) -> bool:
    return package in _OPTIONAL and importlib.util.find_spec(package) is None


def why_skipped(error: BaseException | None) -> str:
    """Return which optional package, deleted room or row of a door an error is about; empty for any other error."""
    if package := absent(error):
        return f"{package} is not installed"
    while error is not None:
        if reason := without.reason(error):
            return reason
        error = error.__cause__ or error.__context__
    return ""


def absent(error: BaseException | None) -> str:
    """The first missing optional package that an error, or what it came from, is about; empty for any other error."""
    while error is not None:
        if isinstance(error, ImportError):
            named = (error.name or "").partition(".")[0]
            found = [package for package in sorted(_OPTIONAL) if package == named or f" {package}" in str(error)]
            if any(map(_lacks, found)):
                return next(filter(_lacks, found))
        error = error.__cause__ or error.__context__
    return ""


@contextmanager
def skipped_where_lacking() -> Iterator[None]:
    """A test that stops because an optional package is not installed, or a room is deleted, counts as skipped."""
    try:
        yield
    except (Exception, pytest.fail.Exception) as error:  # "did not warn" hides what stopped the block
        reason = why_skipped(error)
        if not reason:
            raise
        pytest.skip(reason)
