"""Rows that a device caches between rounds change no sum, stay in their memory, and are mapped once."""

import warnings
from functools import partial

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import privstats as ps
from privstats.moments import device_tiles, exact_moments, gradient_map
from privstats.moments.device_cache import checksum
from privstats.records.row_cache import RowCache
from privstats.schema.public_values import Published, Values
from tests.cards import DEVICES, tensors_elsewhere
from tests.moments.test_gradients import RIDGE, SCHEMA, C, D, published, published_ridge, records

torch = pytest.importorskip("torch", reason="torch is an extra")
from benchmarks.moments.device_counts import of_rounds  # noqa: E402 - needs torch

ROUNDS = {
    "softmax": (SCHEMA, partial(published, 0)),
    "fine": (ps.GradientSchema(D, C, residual_norm=0.3, expected_records=100, course_mu=1.0, grid_bits=20),
             partial(published, 0)),
    "regression": (RIDGE, partial(published_ridge, 0)),
}  # fmt: skip


@pytest.fixture(autouse=True)
def elsewhere(monkeypatch):
    """Tensors in host memory pass for tensors elsewhere."""
    tensors_elsewhere(monkeypatch)


@pytest.fixture
def formed(monkeypatch):
    """The number of rows of each call of a map."""
    counts: list[int] = []
    for name in ("unit_rows", "short_rows"):
        right = getattr(gradient_map, name)
        monkeypatch.setattr(
            gradient_map,
            name,
            lambda schema, rows, *more, right=right: counts.append(len(rows)) or right(schema, rows, *more),
        )
    return counts


def measured(schema, X, y, said, cache=None, device="cpu", **given):
    tensors = (torch.as_tensor(each, device=device) for each in (X, y))
    return exact_moments(schema, *tensors, published=said, cache=cache, **given)


def host(schema, X, y, said, **given):
    return exact_moments(schema, X, y, published=said, **given)


def other_map(said):
    return Published.of({**said.read(), "M": Values.rounded(np.eye(D))})


CHANGES = {
    "nothing": lambda X, _: None,
    "one entry": lambda X, row: X.__setitem__((row, 3), X[row, 3] + 0.5),
    "a sign": lambda X, row: X.__setitem__(row, -X[row]),
    "two rows exchanged": lambda X, row: X.__setitem__([0, row], X[[row, 0]]),
    "all doubled": lambda X, _: X.__imul__(2),
    "a gap": lambda X, row: X.__setitem__((row, 1), np.nan),
}


@pytest.mark.parametrize("device", DEVICES)
@given(data=st.data())
def test_rounds_of_one_cache_have_the_hosts_integers_whatever_changes_between_them(device, data):
    schema, said = ROUNDS[data.draw(st.sampled_from(list(ROUNDS)))]
    X, y = records(data.draw(st.integers(1, 40)), seed=data.draw(st.integers(0, 99)))
    cache = RowCache(data.draw(st.sampled_from([0, 700, 1 << 20])))
    for _ in range(3):
        CHANGES[data.draw(st.sampled_from(list(CHANGES)))](X, data.draw(st.integers(0, len(X) - 1)))
        values = said(data.draw(st.sampled_from([0.4, 0.8, 3.0])))
        values = other_map(values) if data.draw(st.booleans()) else values
        size = data.draw(st.sampled_from([1, 3, 16, 64]))
        given = {"unreadable": data.draw(st.sampled_from(["refuse", "leave out"]))}
        with pytest.MonkeyPatch.context() as patched, warnings.catch_warnings():
            warnings.simplefilter("ignore", ps.errors.UnreadableRecordsWarning)
            patched.setattr(device_tiles, "tile_rows", lambda *_, size=size: size)
            there, here = measured(schema, X, y, values, cache, device, **given), host(schema, X, y, values, **given)
        assert (there, there.records) == (here, here.records)


@pytest.mark.parametrize("name", ROUNDS)
@pytest.mark.parametrize("unreadable", ["refuse", "leave out"])
def test_rows_are_mapped_once_for_all_rounds_of_one_map(name, unreadable, formed, monkeypatch):
    monkeypatch.setattr(device_tiles, "tile_rows", lambda *_: 64)
    schema, said = ROUNDS[name]
    (X, y), cache = records(200), RowCache()
    for size in (0.8, 0.4, 0.8):
        measured(schema, X, y, said(size), cache, unreadable=unreadable)
    assert sum(formed) == 200
    measured(schema, X, y, other_map(said(0.8)), cache)
    assert sum(formed) == 400


def test_a_tile_with_an_unreadable_record_is_mapped_in_every_round(formed, monkeypatch):
    monkeypatch.setattr(device_tiles, "tile_rows", lambda *_: 50)
    (X, y), cache = records(200), RowCache()
    X[70] = np.inf
    for _ in range(3):
        measured(SCHEMA, X, y, published(), cache)
    assert formed == [50] * 4 + [50] * 2


def test_labels_are_read_in_every_round(formed):
    (X, y), cache = records(60), RowCache()
    for labels in (y, (y + 1) % C):
        assert measured(SCHEMA, X, labels, published(), cache) == host(SCHEMA, X, labels, published())
    with pytest.raises(ps.errors.RecordError, match="outside 0"):
        measured(SCHEMA, X, y + 1, published(), cache)
    assert formed == [60, 60, 60]  # two of them on the host


@pytest.mark.parametrize(("name", "entry"), [("softmax", 2), ("fine", 4)])
def test_memory_is_bounded_and_a_row_takes_the_bytes_that_its_grid_needs(name, entry, formed, monkeypatch):
    monkeypatch.setattr(device_tiles, "tile_rows", lambda *_: 50)
    schema, said = ROUNDS[name]
    tile = 50 * (entry * (D + 1) + 1)
    (X, y), cache = records(200), RowCache(3 * tile)
    for _ in range(2):
        measured(schema, X, y, said(), cache)
    assert cache._bytes == 3 * tile
    assert formed == [50] * 4 + [50]


def test_a_device_that_multiplies_wrongly_leaves_nothing_in_the_cache(monkeypatch):
    from privstats.moments import device_rounds

    (X, y), cache = records(60), RowCache()
    monkeypatch.setattr(device_rounds, "wrong_floats", lambda torch, *_: torch.ones((), dtype=torch.int64))
    with pytest.raises(ps.PrivstatsError, match="measure on the host"):
        measured(SCHEMA, X, y, published(), cache)
    assert cache._bytes == 0


def test_a_course_of_one_party_maps_its_tensors_once(formed):
    X, y = records(400)
    schema = ps.ClassSchema(C, D, "NAB", clip_norm=1.0, transform=(ps.transforms.UnitNorm(),))
    promise = ps.Privacy(model="central", unit="record", adjacency="add-remove", epsilon=8.0, delta=1e-5)
    course = ps.Rounds.within(ps.course.alone.single_party_plan(schema, promise), rounds=3, expected_records=400)
    tensors = (torch.as_tensor(each) for each in (X, y))
    assert None not in ps.private_releases(course, *tensors, ledger="uncharged")
    assert formed == [400]


@given(
    values=st.lists(st.floats(), min_size=2, max_size=30),
    columns=st.integers(1, 5),
    place=st.integers(0, 29),
    other=st.floats(),
)
def test_a_checksum_differs_where_one_entry_does(values, columns, place, other):
    rows = torch.tensor(values[: len(values) // columns * columns] or values[:1] * columns, dtype=torch.float64)
    rows = rows.view(-1, columns)
    changed = rows.clone()
    changed.view(-1)[place % rows.numel()] = other
    same = torch.equal(rows.view(torch.int64), changed.view(torch.int64))
    assert (checksum(torch, rows) == checksum(torch, changed)) == same


@given(st.floats(allow_nan=False), st.floats(allow_nan=False), st.booleans())
def test_no_two_numbers_have_one_checksum(one, other, flipped):
    """An exclusive or with the shifted bits was the same for all bits flipped: 1.5 and -2.9999999999999996."""
    one, other = (torch.tensor([[each]], dtype=torch.float64) for each in (one, other))
    other = (~one.view(torch.int64)).view(torch.float64) if flipped else other
    if not other.isnan().any():
        same = torch.equal(one.view(torch.int64), other.view(torch.int64))
        assert (checksum(torch, one) == checksum(torch, other)) == same


@pytest.mark.parametrize("kind", ["int8", "float32", "float64", "labels"])
def test_checksums_of_many_alike_rows_differ(kind):
    """Small integers in float64 end in many zeros, which must not cancel."""
    rng = np.random.default_rng(0)
    rows = torch.as_tensor(rng.normal(size=(40, 3)) if kind.startswith("float") else rng.integers(0, 2, (40, 3)))
    rows = rows.to(torch.float32 if kind == "float32" else torch.float64).double()
    found = {int(checksum(torch, rows))}
    for row in range(1, 40):
        for column in range(3):
            changed = rows.clone()
            changed[row, column] += 1.0
            found.add(int(checksum(torch, changed)))
    assert len(found) == 1 + 39 * 3


def test_a_later_round_multiplies_by_no_map_and_waits_twice_for_each_tile():
    schema, said = ROUNDS["softmax"]
    X, y = map(torch.as_tensor, records(100))
    first, later = of_rounds(schema, X, y, 2, published=said())
    check = first.multiplied - 100 * (D * D + 2 * C * (D + 1))
    assert later.multiplied == check + 100 * 2 * C * (D + 1)
    assert first.waits == later.waits == {"item": 1, "tolist": 1, "numpy": 1}
