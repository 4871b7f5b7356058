"""Files that are there are replaced where that is asked for, and never otherwise."""

from __future__ import annotations

from pathlib import Path

import pytest

from privstats.cli.parts.output import writable
from privstats.errors import DataError


def test_a_file_that_is_there_is_replaced_only_by_force(tmp_path: Path) -> None:
    there, new = tmp_path / "there", tmp_path / "new"
    there.write_text("kept")
    writable([new], force=False)
    writable([new, there], force=True)
    with pytest.raises(DataError, match=r"there exists; name another file, or pass --force to replace it"):
        writable([new, there], force=False)
    assert there.read_text() == "kept"
    assert not new.exists()


def test_no_command_looks_for_itself() -> None:
    """The sentence stands once: five commands had it, and one of them another error."""
    root = Path(__file__).parents[2] / "privstats"
    found = [path.name for path in root.rglob("*.py") if "pass --force to replace it" in path.read_text("utf-8")]
    assert found == ["output.py"]
