"""Files that are there are replaced where that is asked for, and never otherwise."""

import ast
import os
from pathlib import Path
from typing import Any

import pytest

import privstats as ps
from privstats.cli.parts.terminal import drawable, folder_for, writable
from tests.made import promise, refused


def test_a_file_that_is_there_is_replaced_only_by_force(tmp_path: Path) -> None:
    there, new = tmp_path / "there", tmp_path / "new"
    there.write_text("kept")
    writable([new], force=False)
    writable([new, there], force=True)
    with pytest.raises(ps.DataError, match=r"there exists; name another file, or pass --force to replace it"):
        writable([new, there], force=False)
    assert there.read_text() == "kept"
    assert not new.exists()


def test_a_file_without_a_folder_is_refused_before_the_work(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    made, file = tmp_path / "made", tmp_path / "file"
    file.write_text("kept")
    with pytest.raises(ps.PrivstatsError, match=r"cannot write .*page.html: there is no folder .*made; make it"):
        writable([made / "page.html"], force=True)
    writable([made / "page.html"], force=False, makes=made)
    refused(ps.PrivstatsError, "it is a folder; name a file", writable, [tmp_path], force=True)
    refused(ps.PrivstatsError, "there is no folder", drawable, file / "page.svg")
    refused(ps.ReleaseError, "a figure is saved as", drawable, tmp_path / "page.doc")
    drawable(None)
    monkeypatch.setattr(os, "access", lambda *_: False)
    for wrong in (lambda: writable([tmp_path / "page.html"], force=True), lambda: folder_for(tmp_path)):
        refused(ps.PrivstatsError, "this account may not write to", wrong)


@pytest.mark.parametrize(
    "words",
    [
        ("try", "north.csv", "south.csv", "--target", "ill", "--epsilon", "3", "--out", "none/try.html"),
        ("table", "one.release", "--out", "none/table.csv"),
        ("table", "one.release", "--figure", "none/table.svg"),
        ("score", "ill.head", "north.csv", "--figure", "none/roc.svg"),
        ("plan", "init", "none/plan.toml"),
        ("plan", "certify", "plan.toml", "--out", "none/certificate.json"),
        ("stream", "init", "none/stream.toml", "--plan", "plan.toml", "--epochs", "2"),
    ],
)
def test_every_command_says_so_before_it_reads_or_computes(privstats: Any, tmp_path: Path, words: tuple[str, ...]):
    """The files that it would read hold nothing, so whoever reads them first complains of that."""
    for name in ("north.csv", "south.csv", "one.release", "ill.head"):
        (tmp_path / name).touch()
    schema, private = ps.ClassSchema(2, 2, "NAB", clip_norm=1.0), promise()
    (tmp_path / "plan.toml").write_text(ps.Plan(schema=schema, cohort=ps.Cohort(3, 3, 100), privacy=private).to_toml())
    done = privstats(*words, cwd=tmp_path, code=2)
    assert "there is no folder none; make it, or name another place" in " ".join(done.stderr.split()), done.stderr


@pytest.mark.ci
@pytest.mark.parametrize("room", ["privstats", "threat_models"])
def test_what_is_said_in_one_line_is_one_line(room: str) -> None:
    """``say`` escapes line ends, so a text of two lines would show them as they are written in Python."""
    for path in Path(__file__).parents[2].glob(f"{room}/**/*.py"):
        text = path.read_text("utf-8")
        for call in ast.walk(ast.parse(text)) if "say(" in text else ():
            if isinstance(call, ast.Call) and getattr(call.func, "id", getattr(call.func, "attr", "")) == "say":
                texts = [each.value for each in ast.walk(call) if isinstance(each, ast.Constant)]
                assert not any("\n" in text for text in texts if isinstance(text, str)), f"{path}:{call.lineno}"
