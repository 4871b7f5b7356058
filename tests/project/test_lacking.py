"""What is not installed is skipped, and nothing else is."""

import pytest

from privstats import optional_dependencies
from tests import lacking


@pytest.fixture
def without_torch(monkeypatch):
    found = lacking.importlib.util.find_spec
    monkeypatch.setattr(lacking.importlib.util, "find_spec", lambda name: None if name == "torch" else found(name))


def test_a_missing_extra_is_named_whoever_asked_for_it(without_torch):
    with pytest.raises(ImportError) as refused:
        optional_dependencies.require("torch", by="a test")
    assert lacking.absent(refused.value) == "torch"
    assert lacking.absent(ModuleNotFoundError("No module named 'torch.nn'", name="torch.nn")) == "torch"


@pytest.mark.parametrize(
    "error",
    [
        ModuleNotFoundError("No module named 'numpy'", name="numpy"),
        ModuleNotFoundError("No module named 'hypothesis'", name="hypothesis"),  # which is installed
        ImportError("cannot import name 'gone' from 'privstats'", name="privstats"),
        ValueError("torch"),
    ],
)
def test_every_other_error_is_a_failure(error, without_torch):
    assert lacking.absent(error) == ""
    with pytest.raises(type(error)), lacking.skipped_where_lacking():
        raise error


def test_a_test_that_needs_what_is_missing_is_skipped(without_torch):
    with pytest.raises(pytest.skip.Exception, match="torch is not installed"), lacking.skipped_where_lacking():
        optional_dependencies.require("torch", by="a test")
