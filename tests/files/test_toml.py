"""A document of others is toml_tables in bounded work, or refused in words."""

from __future__ import annotations

from pathlib import Path
from tomllib import TOMLDecodeError

import pytest

import privstats as ps
from privstats.course.document import read
from privstats.errors import PrivstatsError
from privstats.files.toml import toml_tables
from privstats.secagg import Roster

BUSY = {
    "a key of many parts": "a" + ".a" * 20_000 + " = 1",
    "a quoted key of many parts": 'a . "b.c"' + " . 'd'" * 20_000 + " = 1",
    "a table of many parts": "[a" + ".a" * 20_000 + "]",
    "a key with a quote in one of its parts": r'"\""' + ".a" * 5_000 + " = 1",
    "many keys of three parts": "".join(f"a{place}.b.c = 1\n" for place in range(5_000)),
    "a key in an inline table": "x = { a" + ".a" * 20_000 + " = 1 }",
    "deep": "a = " + "[" * 20_000,
    "a number without end": "a = " + "9" * 5_000,
}


@pytest.mark.parametrize("kind", BUSY)
def test_what_would_keep_a_reader_busy_is_no_toml(kind: str, tmp_path: Path) -> None:
    """A key of 500,000 parts, one megabyte, took all memory of a machine."""
    with pytest.raises(TOMLDecodeError, match="more than 16 parts|nests too deeply|have three parts"):
        toml_tables(BUSY[kind])
    for reader in (ps.Plan.from_toml, Roster.from_toml):
        with pytest.raises(PrivstatsError, match="TOML"):
            reader(BUSY[kind])
    path = tmp_path / "course.toml"
    path.write_text(BUSY[kind])
    with pytest.raises(PrivstatsError, match="TOML"):
        read(path)


def test_numbers_texts_and_short_keys_are_no_long_key() -> None:
    text = "edges = [" + "0.5, " * 100 + '1.5]\na.b."c.d" = \'' + "x. " * 50 + "'\n# " + "so. " * 50
    assert toml_tables(text)["a"]["b"]["c.d"] == "x. " * 50
