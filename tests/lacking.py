"""Tests of what is not installed are skipped: an extra's absence is no failure of the library.

Loaded by ``conftest``. Either an import failed, of an absent package that no plain installation has; or a row of a door
is needed, and no installed package announces any row there. ``tests/project/test_light_rows.py`` fails where a door has
no row in a complete installation.
"""

import importlib.util
from collections.abc import Iterator
from contextlib import contextmanager

import pytest

from privstats import optional_dependencies
from privstats.errors import PrivstatsError
from privstats.plug_ins import announced

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


def absent(error: BaseException | None) -> str:
    """The first missing optional package that an error, or what it came from, is about; empty for any other error."""
    while error is not None:
        if isinstance(error, PrivstatsError) and error.lacking and not announced(error.lacking):
            return f"a package that announces {error.lacking}"
        if isinstance(error, ImportError):
            named = (error.name or "").partition(".")[0]
            found = [package for package in sorted(_OPTIONAL) if package == named or f" {package}" in str(error)]
            if any(map(_lacks, found)):
                return next(filter(_lacks, found))
        error = error.__cause__ or error.__context__
    return ""


@contextmanager
def skipped_where_lacking() -> Iterator[None]:
    """A test that stops because an optional package is not installed counts as skipped."""
    try:
        yield
    except Exception as error:
        package = absent(error)
        if not package:
            raise
        pytest.skip(f"{package} is not installed")
