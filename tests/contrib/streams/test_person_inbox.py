"""What a party brings to a stream of persons: of each the rows that came first, and nobody decides for others."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest

import privstats as ps
from privstats.contrib.streams import PersonRows
from privstats.contrib.streams.inbox import PersonInbox
from privstats.contrib.streams.local_stream import new_stream, run_epoch, server_folder
from privstats.contrib.streams.party import inbox, registry_of, standing, waiting
from privstats.encoding import flatten
from privstats.engines.network.folder import Folder
from privstats.errors import DataError
from tests import made
from tests.contrib.streams.test_person_streams import CLASSES, added, book_of, rows_of, stream_of

pytestmark = pytest.mark.filterwarnings("ignore::privstats.errors.UnreadableRecordsWarning")


def file_of(place: Path, rows: PersonRows, leave: Any = (), name: str = "batch") -> Path:
    path = place / f"{name}.npz"
    np.savez(path, persons=np.array(rows.persons, "U20"), X=rows.X, y=rows.y, leave=np.array(list(leave), "U20"))
    return path


@pytest.fixture
def box(tmp_path: Path) -> PersonInbox:
    found = inbox(tmp_path / "party", stream_of(deletions=True))
    assert isinstance(found, PersonInbox)
    found.home.mkdir()
    return found


@pytest.fixture
def rng() -> np.random.Generator:
    return np.random.default_rng(1)


def test_who_comes_again_is_left_out_and_counted_and_everybody_else_enters(
    box: PersonInbox, tmp_path: Path, rng: np.random.Generator
) -> None:
    book, first = book_of(tmp_path, box.stream), rows_of(rng, CLASSES, {"7": 6, "anna": 1})
    assert box.bring(file_of(tmp_path, first)).names == ("7", "anna")
    later = rows_of(rng, CLASSES, {"007": 2, "ben": 3, "n/a": 1})
    raw = PersonRows(np.vstack([later.X, np.ones((1, 4))]), np.append(later.y, 0), (*later.persons, "n/a"))
    with pytest.warns(ps.errors.UnreadableRecordsWarning) as told:
        brought = box.bring(file_of(tmp_path, raw, leave=["anna"]))
    assert (brought.names, len(brought.ids), brought.leave) == (("ben",), 3, ("anna",))
    said = " ".join(str(each.message) for each in told)
    assert "2 rows of 1 persons who entered before are excluded: a person enters once" in said
    assert "1 rows have an id that names no person" in said
    for _ in range(2):  # a call that was killed is made good, and one that was not changes nothing
        box.register(book)
    assert [book.state(name) for name in ("7", "anna", "ben")] == ["in", "gone", "in"]
    due = box.pending(book, 0)
    assert due.entering == ("7", "ben")
    here = PersonRows(*(np.concatenate(pair) for pair in ((first.X, later.X), (first.y, later.y))),
                      first.persons + later.persons)  # fmt: skip
    whole = added(box.stream, first.only(["7"])) + added(box.stream, later.only(["ben"]))
    assert np.array_equal(flatten(box.change(book, due)), whole)
    assert not np.array_equal(added(box.stream, here.only(["7", "ben"])), whole)  # with the rows of 7 that came later


def test_nothing_new_is_refused_and_kept_nowhere(box: PersonInbox, tmp_path: Path, rng: np.random.Generator) -> None:
    path = file_of(tmp_path, rows_of(rng, CLASSES, {"anna": 2}))
    box.bring(path)
    with pytest.raises(DataError, match="holds nobody who enters and nobody who leaves: 2 rows of 1 persons"):
        box.bring(path)
    with pytest.raises(DataError, match="1 records in leave that never entered"):
        box.bring(file_of(tmp_path, rows_of(rng, CLASSES, {"ben": 1}), leave=["ben"]))
    with pytest.raises(DataError, match="leave holds an id that names no person"):
        box.bring(file_of(tmp_path, rows_of(rng, CLASSES, {"ben": 1}), leave=["n/a"]))
    assert list(box.batches()) == [0]


@pytest.mark.parametrize("odd", ["x" * 201, "x" * 1025, "\u0958" * 150])
def test_an_id_that_no_registry_takes_is_nobody_and_stops_no_party(
    box: PersonInbox, tmp_path: Path, rng: np.random.Generator, odd: str
) -> None:
    """NFC makes two characters of one here."""
    book, rows = book_of(tmp_path, box.stream), rows_of(rng, CLASSES, {"anna": 2, odd: 1, "y" * 200: 1})
    path = tmp_path / "odd.npz"
    np.savez(path, persons=np.array(rows.persons), X=rows.X, y=rows.y)
    assert box.bring(path).names == ("anna", "y" * 200)
    box.register(book)
    assert book.state("anna") == book.state("y" * 200) == "in"


def test_ids_of_records_are_no_ids_of_persons(box: PersonInbox, tmp_path: Path) -> None:
    """Taken for persons, every row would have been one, and the promise that of a record."""
    rows = {"X": np.ones((2, 4)) / 4, "y": np.zeros(2, int)}
    np.savez(tmp_path / "records.npz", ids=["a", "b"], **rows)
    with pytest.raises(DataError, match="holds ids of records, and the plan promises persons: save persons"):
        box.bring(tmp_path / "records.npz")
    plan = made.plan(CLASSES, ps.Cohort(3, 2, 300), made.promise())
    np.savez(tmp_path / "persons.npz", persons=["a", "a"], **rows)
    with pytest.raises(DataError, match="holds ids of persons, and the plan promises records: save ids"):
        inbox(tmp_path / "other", ps.Stream(plan, 2)).bring(tmp_path / "persons.npz")
    np.savez(tmp_path / "both.npz", persons=["a", "a"], ids=["x", "y"], **rows)
    with pytest.raises(DataError, match="must hold the arrays ids"):
        box.bring(tmp_path / "both.npz")


def test_room_counts_the_rows_of_persons_and_no_person_for_more_than_a_public_number(
    tmp_path: Path, rng: np.random.Generator
) -> None:
    promise = made.promise(unit="person", max_records_per_person=2, person_clip=2.0, shares={"N": 0.5, "A": 0.5})
    schema = ps.ClassSchema(2, 4, "NA", 1.0)
    small = ps.Stream(made.plan(schema, ps.Cohort(3, 2, 30), promise), 4, deletions=True)  # ten of each party
    box = inbox(tmp_path / "party", small)
    box.home.mkdir()
    most = small.plan.person_clip.most_records(schema)
    assert 2 < most < 10
    batch = PersonRows.of(np.ones((100, 4)), np.zeros(100, int), ["anna"] * 100)
    assert box.bring(file_of(tmp_path, batch)).names == ("anna",)
    assert box.weigh(["anna"]) == most
    rest = rows_of(rng, CLASSES, {f"b{place}": 1 for place in range(11 - most)})
    with pytest.raises(DataError, match="would move 11 of this party's records, and the plan has room for 10"):
        box.bring(file_of(tmp_path, PersonRows(rest.X, rest.y % 2, rest.persons)), lambda _: box.weigh(["anna"]))


@pytest.mark.ci
def test_a_study_of_patients_runs_in_a_folder_and_one_is_unlearned(tmp_path: Path, rng: np.random.Generator) -> None:
    stream = stream_of("increments", 3, deletions=True, epsilon=20.0)
    new_stream(tmp_path / "study", stream)
    inside: dict[tuple[int, str], PersonRows] = {}
    for epoch in range(3):
        day = tmp_path / f"day{epoch}"
        day.mkdir()
        for party in range(3):
            rows = rows_of(rng, CLASSES, {f"{epoch}{name}": int(rng.integers(1, 9)) for name in "abc"})
            again = [(party, f"{epoch - 1}b")] if epoch else []  # comes once more, with other rows: they stay out
            more = [rows_of(rng, CLASSES, {name: 2}) for _, name in again]
            gone = [(party, f"{epoch - 1}a")] if epoch else []
            inside |= {(party, name): rows.only([name]) for name in rows.names}
            for each in gone:
                del inside[each]
            X, y = (np.concatenate([getattr(each, part) for each in (rows, *more)]) for part in ("X", "y"))
            names = tuple(name for each in (rows, *more) for name in each.persons)
            file_of(day, PersonRows(X, y, names), [name for _, name in gone], str(party))
        (release,) = run_epoch(tmp_path / "study", day, away=[1] if epoch == 1 else [])
        assert release is not None
    for party in range(3):
        home = Folder.open(tmp_path / "study" / str(party))
        told, box, book = standing(home), inbox(home.home, stream), registry_of(home)
        assert (told.begun, told.inside, told.gone, told.entering, told.leaving) == (3, 7, 2, 0, 0)
        assert waiting(home) == 0
        carried = [box.carried(book, node) for node in range(3)]
        entered, left = box.weigh([f"{epoch}{name}" for epoch in range(3) for name in "abc"]), box.weigh(["0a", "1a"])
        assert (sum(carried), carried[1] > 0) == (entered + left - 2 * box.weigh(["1a"] * (party == 1)), party != 1)
    folder, _ = server_folder(tmp_path / "study")
    total, afresh = stream.total(folder.releases_so_far()), sum(added(stream, rows) for rows in inside.values())
    noise = stream.first.noise
    levels = np.concatenate([np.full(each.size, noise.grid_sigma(each)) for each in stream.first.layout.segments])
    assert (np.abs(total.vector - afresh) < 6 * np.sqrt(3) * levels).all()
