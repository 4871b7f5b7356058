"""Each row of the table of restored copies in ``docs/ledger.md`` names the one test that shows it."""

import re
from pathlib import Path

ROOT = Path(__file__).parents[2]
ROW = re.compile(r"^\| (?P<what>[^|]+) \| (?P<by>[^|]+) \| `(?P<file>[^`]+)`: `(?P<test>[^`]+)` \|$")


def table() -> list[str]:
    """The rows of the table, below its head."""
    lines = (ROOT / "docs" / "ledger.md").read_text("utf-8").splitlines()
    start = lines.index("| what happens | detected by | shown by |") + 2
    return lines[start : lines.index("", start)]


def test_each_row_names_a_test_that_is_there() -> None:
    found = [ROW.match(line) or line for line in table()]
    assert not [each for each in found if isinstance(each, str)]
    named = [(each["file"], each["test"]) for each in found if not isinstance(each, str)]
    assert len(set(named)) == len(named) > 10
    for file, test in named:
        text = (ROOT / file).read_text("utf-8")
        assert f"def {test}(" in text or f'("{test}"' in text, (file, test)


def test_every_way_to_restore_that_a_chain_test_knows_has_a_row() -> None:
    rows = "\n".join(table())
    tests = re.findall(r"^def (test_\w+)\(", (ROOT / "tests/ledger/test_chain.py").read_text("utf-8"), re.MULTILINE)
    told = [each for each in tests if re.search(r"restored|copy|copies|another_ledger|computed_anew", each)]
    assert len(told) > 5
    assert not [each for each in told if each not in rows and "kill" not in each]
