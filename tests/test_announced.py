"""Entry points that are read from the packages' folders are those that ``importlib.metadata`` finds."""

from __future__ import annotations

import subprocess
import sys
from importlib import metadata
from pathlib import Path

import pytest

from privstats.announced import Entry, entries


@pytest.mark.parametrize("group", ["privstats.commands", "privstats.findings", "console_scripts", "pytest11", "none"])
def test_a_group_has_the_entries_that_python_finds(group: str) -> None:
    theirs = {(entry.name, entry.value) for entry in metadata.entry_points(group=group)}
    assert {(entry.name, entry.value) for entry in entries(group)} == theirs


def test_commands_and_findings_are_announced() -> None:
    for group in ("privstats.commands", "privstats.findings"):
        assert sorted(entry.name for entry in entries(group)) == ["attack", "audit"]
        assert all(callable(entry.load()) for entry in entries(group))


def package(folder: Path, name: str, text: str | None) -> None:
    (folder / name).mkdir(parents=True)
    if text is not None:
        (folder / name / "entry_points.txt").write_text(text)


def test_what_is_written_is_read(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    first, second = tmp_path / "first", tmp_path / "second"
    package(
        first,
        "ward-1.dist-info",
        "[other]\na = b:c\n[commands]\n# a = x:y\n\n ward = ward.cli : app [extra]\nnothing\n",
    )
    package(second, "ward-0.dist-info", "[commands]\nold = ward:old\n")
    package(second, "old.egg-info", "[commands]\nolder = builtins:str.upper\n")
    package(second, "bare-1.dist-info", None)
    monkeypatch.setattr(sys, "path", [str(first), str(tmp_path / "no.zip"), str(second), str(second)])
    found = entries("commands")
    assert set(found) == {Entry("ward", "ward.cli : app [extra]"), Entry("older", "builtins:str.upper")}
    assert {entry.name: entry for entry in found}["older"].load() is str.upper
    with pytest.raises(ModuleNotFoundError, match="ward"):
        found[0].load()


def test_the_commands_are_listed_without_the_metadata_of_every_package() -> None:
    code = (
        "from privstats.cli.main import _entries; _entries(); import sys; sys.exit('importlib.metadata' in sys.modules)"
    )
    subprocess.run([sys.executable, "-c", code], check=True)
