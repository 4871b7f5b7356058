"""Fewer and fewer assertions quote a sentence; the counts by room only shrink."""

from collections import Counter
from pathlib import Path

import pytest

from tests.project.worded import counted, listed, quotes, room_of, text

SIX = "one two three four five six"


@pytest.mark.ci
def test_no_room_quotes_more_sentences_than_before() -> None:
    """A room that was deleted keeps its line here until the command lowers the counts."""
    now, before = counted(), listed()
    more = [f"{room}: {now[room]} assertions, and {before[room]} before" for room in sorted(now - before)]
    assert not more, "\n".join(["compare a name, a number or a field, not a sentence:", *more])
    fewer = sorted(room for room in now if now[room] < before[room])
    assert not fewer, f"these rooms quote fewer now, run python -m tests.project.worded: {fewer}"


@pytest.mark.parametrize(
    ("line", "count"),
    [
        (f"assert '{SIX}' in text", 1),
        (f"assert not any('{SIX}' in note for note in notes)", 1),
        (f"assert text.split(', ') == ['{SIX}', '{SIX}']", 1),
        ("assert f'one two {three} four five six' in text", 1),
        (f"with pytest.raises(ValueError, match='{SIX}'): pass", 1),
        (f"with pytest.warns(UserWarning, match=r'{SIX}'): pass", 1),
        ("assert 'one two three four five' in text", 0),
        ("assert f'one {two} three four {five}' in text", 0),
        (f"assert found, '{SIX}'", 0),
        (f"text = '{SIX}'", 0),
    ],
)
def test_each_form_of_an_assertion_is_found(line: str, count: int) -> None:
    assert len([*quotes(line)]) == count


@pytest.mark.parametrize(
    ("path", "room"),
    [
        ("test_alone.py", "."),
        ("cli/test_try.py", "cli"),
        ("cli/plan_init/test_surveys.py", "cli"),
        ("contrib/test_table_readers.py", "contrib"),
        ("contrib/http/deep/test_door.py", "contrib/http"),
    ],
)
def test_a_room_is_a_folder_and_in_some_folders_each_folder(path: str, room: str) -> None:
    assert room_of(Path(path)) == room


def test_the_command_raises_no_count() -> None:
    """It writes ``listed() & counted()``, the smaller count of each room."""
    assert text(Counter(a=2, b=3) & Counter(a=5, b=1, new=4)).splitlines()[2:] == ["   2 a", "   1 b"]
