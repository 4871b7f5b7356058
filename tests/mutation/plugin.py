"""Plants a bug in a whole pytest process: ``python -m pytest -p tests.mutation.plugin --mutant NAME tests/dp``."""

from contextlib import ExitStack

import pytest

_PLANTED = ExitStack()


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--mutant", help="the deliberate bug under which the tests run")


def pytest_configure(config: pytest.Config) -> None:
    name = config.getoption("--mutant")
    if name is None:
        return
    from tests.mutation.catalogue import MUTANTS
    from tests.mutation.planting import planted

    _PLANTED.enter_context(planted(MUTANTS[name].edits))


def pytest_unconfigure() -> None:
    _PLANTED.close()
