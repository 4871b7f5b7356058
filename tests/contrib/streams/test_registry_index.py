"""The rows of a record registry are what its chain leads to, whoever wrote them, and an edit of one is noticed."""

import hmac
import signal
import sqlite3
import subprocess
import sys
import textwrap
from collections import Counter
from collections.abc import Callable
from contextlib import closing
from pathlib import Path
from typing import Any

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule, run_state_machine_as_test

import privstats as ps
from privstats.contrib.streams import RecordRegistry
from privstats.contrib.streams.registry_index import RegistryIndex, record_keys
from privstats.errors import LedgerError
from tests.contrib.streams.streams import SECRET, plan_of, registry, stream_of
from tests.contrib.streams.test_record_registry import sent

ROOT = Path(__file__).parents[3]
TABLES = ("registry_states", "registry_sends", "registry_seal")
PEOPLE = [f"patient {number}" for number in range(6)]
STREAM = stream_of(4, "tree", deletions=True, repeats=1)


def edited(path: Path, *statements: str) -> None:
    """Another program writes to the ledger's file."""
    with closing(sqlite3.connect(path)) as connection:
        for statement in statements:
            connection.execute(statement)
        connection.commit()


def as_before_the_index(path: Path) -> None:
    """What an older privstats, which kept no rows of an index, left."""
    events = ("INSERT", "UPDATE", "DELETE")
    edited(path, *(f"DROP TRIGGER beside_{event}" for event in events), *(f"DROP TABLE {table}" for table in TABLES))


def rows(path: Path) -> tuple[Any, Any]:
    """Everything in the tables, but records that were sent and returned."""
    with closing(sqlite3.connect(path)) as connection:
        states = dict(connection.execute("SELECT key, state FROM registry_states"))
        sends = "SELECT level, leaves, key, used, there FROM registry_sends WHERE used OR there"
        return states, {found[:3]: found[3:] for found in connection.execute(sends)}


def folded(path: Path) -> tuple[Any, Any]:
    """The same from the chain and the rows beside it, said a second time."""
    states: dict[bytes, str] = {}
    taken: dict[int, list[tuple[int, int, bytes]]] = {}
    used, there = Counter[Any](), Counter[Any]()
    with closing(sqlite3.connect(path)) as connection:
        joined = "SELECT log.body, beside.body FROM log JOIN beside USING (number) ORDER BY number"
        for said, body in connection.execute(joined):
            change = msgspec.json.decode(said)
            match change["action"]:
                case "entered" | "gone":
                    for start in range(0, len(body), 16):
                        states[body[start : start + 16]] = "in" if change["action"] == "entered" else "gone"
                case "taken":
                    each = [body[start : start + 18] for start in range(0, len(body), 18)]
                    taken[change["node"]] = [(send[16], send[17], send[:16]) for send in each]
                    used.update(taken[change["node"]])
                    there.update(taken[change["node"]])
                case "returned":
                    used.subtract(taken[change["node"]])
                    there.subtract(taken[change["node"]])
                case "lost":
                    there.subtract(taken[change["node"]])
    return states, {send: (used[send], there[send]) for send in used if used[send] or there[send]}


class Changes(RuleBasedStateMachine):
    """Any sequence of changes, with an older privstats in between."""

    folder: Path

    def __init__(self) -> None:
        super().__init__()
        for file in self.folder.iterdir():
            file.unlink()
        self.book, self.node = registry(self.folder, STREAM), 0
        self.states, self.ends = dict.fromkeys(PEOPLE, "new"), dict[int, str]()
        self.path = self.folder / "party.db"

    @rule(ids=st.sets(st.sampled_from(PEOPLE)))
    def enter(self, ids: set[str]) -> None:
        self._move(self.book.enter, ids, "new", "in")

    @rule(ids=st.sets(st.sampled_from(PEOPLE), max_size=2))
    def leave(self, ids: set[str]) -> None:
        self._move(self.book.leave, ids, "in", "gone")

    def _move(self, move: Callable[[set[str]], None], ids: set[str], before: str, after: str) -> None:
        if all(self.states[each] == before for each in ids):
            move(ids)
            self.states.update(dict.fromkeys(ids, after))
        else:
            with pytest.raises(LedgerError):
                move(ids)

    @precondition(lambda self: self.node < STREAM.most)
    @rule(leaves=st.booleans())
    def take(self, leaves: bool) -> None:
        charge = self.book.charge(STREAM.first, [None] * self.node, self.book.pending(self.node, PEOPLE))
        charge.spend(STREAM.first, b"")
        if leaves:
            charge.finish(STREAM.first, b"", b"\1" * 32)
        self.ends[self.node] = "left" if leaves else "taken"
        self.node += 1

    @precondition(lambda self: self.ends)
    @rule(data=st.data())
    def settle(self, data: Any) -> None:
        node = data.draw(st.sampled_from(sorted(self.ends)))
        (self.book.lose if self.ends.pop(node) == "left" else self.book.withdraw)(node)

    @rule()
    def an_older_privstats(self) -> None:
        as_before_the_index(self.path)
        self.book.enter([])

    @rule(beside=st.booleans())
    def a_seal_that_breaks(self, beside: bool) -> None:
        edited(self.path, f"UPDATE {'beside SET body = body' if beside else 'registry_states SET key = key'}")

    @invariant()
    def the_rows_are_the_fold_of_the_chain(self) -> None:
        assert rows(self.path) == folded(self.path)
        assert {each: self.book.state(each) for each in PEOPLE} == self.states
        assert RecordRegistry.open(STREAM, self.book.ledger, self.book.entry, SECRET) == self.book


@pytest.mark.parametrize("examples", [4, pytest.param(60, marks=pytest.mark.nightly)])
def test_rows_are_the_fold_of_the_chain_after_any_changes(tmp_path: Path, examples: int) -> None:
    machine = type("Here", (Changes,), {"folder": tmp_path})
    run_state_machine_as_test(machine, settings=settings(max_examples=examples, stateful_step_count=9, deadline=None))


EDITS = {
    "a record back in": "UPDATE registry_states SET state = 'in' WHERE state = 'gone'",
    "a record forgotten": "DELETE FROM registry_states",
    "a record made up": "INSERT INTO registry_states SELECT spend, x'00', state FROM registry_states LIMIT 1",
    "a record of another stream": "UPDATE registry_states SET spend = 7",
    "sent once more": "UPDATE registry_sends SET used = 0, there = 0",
    "never sent": "DELETE FROM registry_sends",
    "sent at another level": "UPDATE registry_sends SET level = 1",
    "never lost": "UPDATE registry_sends SET there = 1, used = 1",
    "a table gone": "DROP TABLE registry_sends",
    "a seal gone": "DELETE FROM registry_seal",
    "a seal further back": "UPDATE registry_seal SET number = number - 1",
    "a seal further on": "UPDATE registry_seal SET number = number + 1",
    "a seal of another chain": "UPDATE registry_seal SET digest = 'ab'",
}


def lived(folder: Path) -> RecordRegistry:
    """A record that is gone, one that is in, and both sent and given up."""
    book = registry(folder, STREAM)
    book.enter(["ash", "beech"])
    sent(book, 0, ["ash", "beech"])
    book.leave(["ash"])
    sent(book, 1, ["ash", "beech"])
    book.lose(1)
    return book


@pytest.mark.parametrize("edit", EDITS.values(), ids=EDITS.keys())
def test_an_edited_row_is_noticed_by_the_next_look_and_the_next_change(tmp_path: Path, edit: str) -> None:
    book = lived(tmp_path)
    edited(tmp_path / "party.db", edit)
    for use in (lambda: book.state("ash"), lambda: book.pending(2, ["ash"]), lambda: book.enter(["cedar"])):
        with pytest.raises(LedgerError, match="was edited|were edited"):
            use()


def test_a_row_that_was_edited_with_its_seal_is_noticed_as_the_registry_is_opened(tmp_path: Path) -> None:
    """Whoever writes the seal anew, or bytes of the file under SQLite, passes the looks until then."""
    book = lived(tmp_path)
    with closing(sqlite3.connect(tmp_path / "party.db")) as connection:
        seal = connection.execute("SELECT * FROM registry_seal").fetchone()
        connection.execute("UPDATE registry_states SET state = 'in'")
        connection.execute("UPDATE registry_seal SET (number, digest, schema) = (?, ?, ?)", seal)
        connection.commit()
    assert book.state("ash") == "in"
    with pytest.raises(LedgerError, match="were edited"):
        registry(tmp_path, STREAM)


def test_a_file_of_an_older_privstats_is_read_as_it_is_and_folded_by_the_first_change(tmp_path: Path) -> None:
    book, path = lived(tmp_path), tmp_path / "party.db"
    kept, due = rows(path), book.pending(2, ["ash", "beech"])
    as_before_the_index(path)
    before = path.read_bytes()
    again = registry(tmp_path, STREAM)
    assert (again.state("ash"), again.state("beech"), again.state("cedar")) == ("gone", "in", "new")
    assert again.pending(2, ["ash", "beech"]) == due
    assert again.records() == {"in": 1, "gone": 1}
    assert path.read_bytes() == before
    again.enter([])
    assert rows(path) == kept


def test_changes_that_an_older_privstats_wrote_are_folded_onto_the_rows(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    book = lived(tmp_path)
    with monkeypatch.context() as older:
        for name in ("apply", "seal"):
            older.setattr(RegistryIndex, name, lambda *_: None)
        book.enter(["cedar"])
    assert "cedar" not in str(rows(tmp_path / "party.db"))
    for _ in range(2):
        assert book.state("cedar") == "in"
        with pytest.raises(LedgerError, match="have entered"):
            book.enter(["cedar"])
        assert registry(tmp_path, STREAM).records() == {"in": 2, "gone": 1}
        book.enter([])
    assert rows(tmp_path / "party.db") == folded(tmp_path / "party.db")


def test_two_streams_in_one_file_are_sealed_together(tmp_path: Path) -> None:
    stream = stream_of(plan=plan_of(epsilon=1.0))
    book = registry(tmp_path, stream)
    book.ledger.set_cap("ward", unit="record", adjacency="add-remove", epsilon=9.0, delta=1e-5)
    june = RecordRegistry.open(stream, book.ledger, ps.course.spend(stream, book.ledger, "ward", b"june"), SECRET)
    book.enter(["ash"])
    sent(june, 0, [])
    june.enter(["ash"])
    as_before_the_index(tmp_path / "party.db")
    book.enter(["beech"])
    assert (june.records(), book.records()) == ({"in": 1}, {"in": 2})
    edited(tmp_path / "party.db", "UPDATE registry_states SET spend = 7 - spend")
    with pytest.raises(LedgerError, match="were edited"):
        june.state("ash")


KILLED = """
    import os, signal, sys
    sys.path.insert(0, {root!r})
    from pathlib import Path
    from privstats.contrib.streams import registry_index
    from tests.contrib.streams.streams import registry
    from tests.contrib.streams.test_registry_index import STREAM
    left, real = [{count}], registry_index.RegistryIndex.{method}
    def killed(self, *arguments):
        left[0] -= 1
        if not left[0]:
            os.kill(os.getpid(), signal.SIGKILL)
        return real(self, *arguments)
    book = registry(Path({folder!r}), STREAM)
    registry_index.RegistryIndex.{method} = killed
    book.enter(["cedar"])
"""


@pytest.mark.parametrize(
    ("method", "count"),
    [("apply", 3), *(pytest.param(*each, marks=pytest.mark.nightly) for each in (("_watch", 1), ("seal", 1)))],
)
def test_a_kill_while_an_older_file_is_folded_changes_nothing(tmp_path: Path, method: str, count: int) -> None:
    book, path = lived(tmp_path), tmp_path / "party.db"
    kept = rows(path)
    as_before_the_index(path)
    program = textwrap.dedent(KILLED).format(root=str(ROOT), folder=str(tmp_path), method=method, count=count)
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, timeout=120)
    assert done.returncode == -signal.SIGKILL, done.stderr
    again = registry(tmp_path, STREAM)
    assert (again.state("ash"), again.state("cedar")) == ("gone", "new")
    book.enter([])
    assert rows(path) == kept


@settings(max_examples=10, deadline=None)
@given(st.binary(min_size=32, max_size=32), st.text(st.characters(exclude_categories=["Cs"]), min_size=1, max_size=60))
def test_ids_go_by_hmac(secret: bytes, name: str) -> None:
    expected = hmac.digest(secret, b"privstats/holding/record\0" + name.encode(), "sha256")[:16]
    assert record_keys(secret, [name]) == [expected]
