"""Tests that are repeated, and the count of their failures."""

from pathlib import Path

import pytest

from tests import repeated

SOMETIMES = """
import pytest

ran = []

@pytest.mark.parametrize("how", ["a", "b"])
def test_every_third_fails(how):
    ran.append(how)
    assert ran.count(how) % 3
"""


@pytest.mark.ci
def test_failures_of_each_test_are_counted(tmp_path: Path, capfd: pytest.CaptureFixture[str], monkeypatch) -> None:
    (tmp_path / "pytest.ini").write_text("[pytest]\n")
    (tmp_path / "test_some.py").write_text(SOMETIMES)
    monkeypatch.setenv("PYTEST_ADDOPTS", "")  # of the run that this test is part of
    monkeypatch.setenv("PYTHONPATH", str(Path(repeated.__file__).parents[1]))
    monkeypatch.chdir(tmp_path)
    assert repeated.main(["--times", "7", "test_some.py"]) == 1
    last = capfd.readouterr().out.splitlines()[-2:]
    assert last == [f"2 of 7 failed: test_some.py::test_every_third_fails[{how}]" for how in "ab"]
