"""What the examples of the room's docstrings show is so."""

import doctest
from importlib import import_module

import pytest

from tests.project.test_examples import FLAGS, GIVEN

MODULES = ("cells", "choice", "columns", "course", "distances", "junction_tree", "rows")


@pytest.mark.parametrize("name", MODULES)
def test_examples_run(name, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    found = doctest.testmod(import_module(f"privstats.contrib.synthetic.{name}"), extraglobs=GIVEN, optionflags=FLAGS)
    assert found.attempted > 0
    assert found.failed == 0
