"""A split: one record more moves that record or nothing, and what is held out is a random sample of the records."""

import warnings
from collections import Counter
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

import privstats as ps
from privstats.encoding import flatten
from privstats.errors import UnevenSplitWarning
from privstats.intake import splits
from privstats.intake.columns import read
from privstats.intake.splits import Split
from privstats.intake.tables import Codes
from privstats.moments import RecordFile, Records
from tests.lengths import sized

pandas = pytest.importorskip("pandas")
SEEDS = st.integers(0, 2**64)
SHARES = st.sampled_from((0.05, 0.25, 0.5, 0.9))
# Few values, so that most records are equal to others.
VALUES = st.sampled_from((0.0, -0.0, 1.0, 2.5, np.nan, "a", "b", "042", "42", None))
RECORDS = st.lists(st.tuples(VALUES, VALUES, st.sampled_from((0, 1, "no", "yes"))), max_size=24)


def objects(rows: list[tuple[Any, ...]]) -> np.ndarray:
    """Return rows as an array of objects, ``(n, 3)``: two features and a target."""
    out = np.empty((len(rows), 3), object)
    for place, row in enumerate(rows):
        out[place] = row
    return out


def of_array(rows: list[tuple[Any, ...]], share: float, seed: int) -> np.ndarray:
    held = objects(rows)
    return Split(share, seed).held_out(held[:, :2], held[:, 2])


def summed(rows: list[tuple[Any, ...]], held_out: np.ndarray) -> Counter[str]:
    """Count what is summed of some records, by what any declaration may read of each."""
    plain = [[np.nan if value is None else value + 0.0 if value == 0 else value for value in row] for row in rows]
    return Counter(repr(row) for row, out in zip(plain, held_out, strict=True) if not out)


def moved(before: Counter[str], after: Counter[str]) -> Counter[str]:
    """Return what two counts differ by, whichever has more of it."""
    return (before - after) + (after - before)


ONE = (0.0, 0.0, "no")


@given(rows=RECORDS, more=st.tuples(VALUES, VALUES, st.sampled_from((0, 1, "no", "yes"))), place=st.integers(0, 24),
    share=SHARES, seed=SEEDS)  # fmt: skip
@example(rows=[ONE] * 12 + [(0.0, 0.0, "yes")] * 12, more=ONE, place=0, share=0.5, seed=1)  # equal but for the target
@example(rows=[("42", 0.0, 1)] * 12 + [("042", 0.0, 1)] * 12, more=("42", 0.0, 1), place=0, share=0.5, seed=1)
@settings(max_examples=sized(100, 3000))
def test_one_record_more_moves_that_record_or_nothing(rows, more, place, share, seed) -> None:
    with_more = [*rows[:place], more, *rows[place:]]
    before = summed(rows, of_array(rows, share, seed))
    after = summed(with_more, of_array(with_more, share, seed))
    assert moved(before, after) in (Counter(), summed([more], np.zeros(1, bool)))
    assert not before - after  # nothing left the sums


@given(rows=RECORDS, share=SHARES, seed=SEEDS, order=st.randoms(use_true_random=False), data=st.data())
@settings(max_examples=sized(60, 2000))
def test_no_order_and_no_size_of_a_batch_changes_what_is_summed(rows, share, seed, order, data) -> None:
    whole = of_array(rows, share, seed)
    shuffled = order.sample(rows, len(rows))
    assert summed(shuffled, of_array(shuffled, share, seed)) == summed(rows, whole)
    cuts = sorted(data.draw(st.lists(st.integers(0, len(rows)), max_size=4)))
    split, held = Split(share, seed), objects(rows)
    batches = np.split(held, cuts)
    parts = [split.held_out(batch[:, :2], batch[:, 2]) for batch in batches]
    assert np.array_equal(np.concatenate(parts), whole)
    if not rows:
        return
    columns = [read(list(column)) for column in held.T]  # as a file gives them
    split = Split(share, seed)
    halves = [[column.part(where) for column in columns] for where in (slice(0, 7), slice(7, None))]
    of_readings = [split.held_out(tuple(half[:2]), tuple(half[2:])) for half in halves]
    if not any(value in ("042", "42") for row in rows for value in row):  # one number, and two texts
        assert np.array_equal(np.concatenate(of_readings), whole)


@given(rows=RECORDS, seed=SEEDS, low=SHARES, high=SHARES)
def test_a_smaller_share_holds_out_some_of_the_same_records(rows, seed, low, high) -> None:
    """So a head may be scored on them (``require_same_split``)."""
    few, many = (of_array(rows, share, seed) for share in sorted((low, high)))
    assert not (few & ~many).any()


def tables() -> dict[str, np.ndarray]:
    rng, n = np.random.default_rng(0), 2000
    cells = rng.integers(0, 3, (n, 3)).astype(float)
    return {
        "zeros": np.zeros((n, 8)),
        "one gap": np.full((n, 1), np.nan),
        "constant columns": np.tile([1.0, -3.0, 0.0, 7.5], (n, 1)),
        "mostly zeros": (rng.random((n, 8)) < 0.03).astype(float),
        "27 cells": cells,
        "two rows": np.repeat([[0.0, 0.0], [0.0, 1.0]], n // 2, axis=0),
        "counters": np.arange(n * 2).reshape(n, 2).astype(float),
        "powers of two": np.exp2(rng.integers(-60, 60, (n, 3))),
        "numbers": rng.normal(size=(n, 5)),
        "wide rows": np.tile(cells, (1, 9)),  # their keys are digests
    }


@pytest.mark.parametrize("share", [0.05, 0.25])
@pytest.mark.parametrize("name", tables())
def test_a_split_is_a_random_sample_in_all_and_by_class(name: str, share: float) -> None:
    """Over many seeds the mean of each share, and its variance, are those of single coins."""
    X, y, seeds = tables()[name], np.random.default_rng(1).random(2000) < 0.1, sized(100, 1000)
    held_out = np.array([Split(share, seed).held_out(X, y) for seed in range(seeds)])
    for of in (np.ones(len(y), bool), y, ~y):
        counts, binomial = held_out[:, of].sum(axis=1), of.sum() * share * (1 - share)
        assert abs(counts.mean() - of.sum() * share) < 5 * np.sqrt(binomial / seeds)
        assert abs(counts.var() / binomial - 1) < 5 * np.sqrt(2 / seeds)


def test_many_small_parties_hold_out_a_random_sample_together() -> None:
    """200 parties of 30 records with few values: equal records of two parties have coins of their own."""
    parties, records, share, seeds = 200, 30, 0.25, sized(20, 200)
    rng = np.random.default_rng(0)
    X = (rng.random((parties, records, 8)) < 0.03).astype(float)
    y = rng.random((parties, records)) < np.where(X.any(axis=-1), 0.3, 0.1)

    def held_out(seed: int) -> np.ndarray:
        seeds_of = [splits.seed_of_party(seed, party, persons=False) for party in range(parties)]
        return np.array([Split(share, own).held_out(X[k], y[k]) for k, own in enumerate(seeds_of)])

    out = np.array([held_out(seed) for seed in range(seeds)])
    for of in (np.ones_like(y), y, ~y):
        counts, binomial = out[:, of].sum(axis=1), of.sum() * share * (1 - share)
        assert abs(counts - of.sum() * share).max() < 5 * np.sqrt(binomial)
        assert counts.var() / binomial < 1 + 5 * np.sqrt(2 / seeds)
        assert abs(counts.mean() - of.sum() * share) < 5 * np.sqrt(binomial / seeds)


STUDIES, PARTIES = st.integers(0, 10**9 - 1), st.integers(0, 2**24)


@given(seed=STUDIES, other=STUDIES, party=PARTIES, last=PARTIES)
def test_no_two_parties_and_no_two_studies_share_a_seed(seed: int, other: int, party: int, last: int) -> None:
    own = splits.seed_of_party(seed, party, persons=False)
    assert (own == splits.seed_of_party(other, last, persons=False)) == ((seed, party) == (other, last))
    assert own < 2**63  # notes hold it
    assert splits.seed_of_party(seed, party, persons=True) == seed


def test_equal_rows_of_two_classes_have_coins_of_their_own() -> None:
    """If labels shared coins, summed and held-out records would mirror each other."""
    X, y = np.zeros((40_000, 2)), np.arange(40_000) % 2
    held_out = Split(0.25, 0).held_out(X, y)
    alike = (held_out[y == 0] == held_out[y == 1]).mean()
    assert abs(alike - (0.25**2 + 0.75**2)) < 0.02
    agree = np.mean([len({*Split(0.5, seed).held_out(X[:2], y[:2]).tolist()}) == 1 for seed in range(2000)])
    assert abs(agree - 0.5) < 0.05


def test_a_model_of_coin_labels_scores_one_half_on_what_is_held_out() -> None:
    """It scored .571 where labels shared coins."""
    areas = []
    for world in range(40):
        rng = np.random.default_rng(world)
        cells, y = rng.integers(0, 60, 3000), rng.integers(0, 2, 3000)
        out = Split(0.25, world).held_out(np.column_stack([cells // 10, cells % 10]).astype(float), y)
        shares = np.bincount(cells[~out], y[~out] + 0.0, 60) / np.bincount(cells[~out], minlength=60)
        scores, labels = shares[cells[out]], y[out] == 1
        above = scores[labels][:, None] - scores[~labels]
        areas.append((above > 0).mean() + (above == 0).mean() / 2)
    assert abs(np.mean(areas) - 0.5) < 0.02


@pytest.mark.parametrize("entries", [2, 4, 8])
def test_rows_that_differ_in_single_entries_have_independent_coins(entries: int) -> None:
    """All rows of zeros and ones, each once: pairs of neighbours and squares of four agree as often as coins do."""
    rows = (np.arange(2**entries)[:, None] >> np.arange(entries) & 1).astype(float)
    held_out = np.array([Split(0.5, seed).held_out(rows, np.zeros(len(rows))) for seed in range(sized(600, 6000))])
    signs = 2.0 * held_out - 1
    for bit in range(entries):
        for other in range(bit):
            at = np.arange(len(rows))
            square = signs[:, at] * signs[:, at ^ 1 << bit] * signs[:, at ^ 1 << other]
            for parity in (signs * signs[:, at ^ 1 << bit], square, square * signs[:, at ^ 1 << bit ^ 1 << other]):
                assert abs(parity.mean(axis=0)).max() < 5.5 / np.sqrt(len(signs))


def test_one_table_is_split_alike_in_every_container(tmp_path: Path) -> None:
    rng, n = np.random.default_rng(0), 400
    frame = pandas.DataFrame({"age": rng.integers(1, 5, n), "dose": rng.integers(0, 3, n) / 4})
    frame["ill"] = np.where(rng.random(n) < 0.3, "yes", "no")
    frame.to_csv(tmp_path / "t.csv", index=False)
    frame.to_csv(tmp_path / "german.csv", index=False, sep=";", decimal=",")
    (tmp_path / "days").mkdir()
    for day in range(3):
        frame.iloc[day::3].to_csv(tmp_path / "days" / f"{day}.csv", index=False)
    np.savez(tmp_path / "t.npz", X=frame[["age", "dose"]].to_numpy(), y=frame["ill"].to_numpy(str))
    files = {"t.csv": {}, "german.csv": {"separator": ";", "decimal": ","}, "days": {}, "t.npz": {}}
    pytest.importorskip("pyarrow")
    frame.to_parquet(tmp_path / "t.parquet")
    with pytest.importorskip("duckdb").connect(str(tmp_path / "base.duckdb")) as base:
        base.execute("create table t as select * from frame")
    files |= {"t.parquet": {}, "base.duckdb/t": {}}
    held = frame[["age", "dose"]].to_numpy()
    want = Counter(map(tuple, held[~Split(0.25, 3).held_out(held, frame["ill"].to_numpy())].tolist()))
    for name, how in files.items():
        for unreadable in ("refuse", "leave out"):
            terms: dict[str, Any] = {"split": 0.25, "seed": 3, **how}
            file = RecordFile(tmp_path / name, "ill", **terms)
            whole = file.read(unreadable=unreadable)  # type: ignore[arg-type]
            assert Counter(map(tuple, whole.X.tolist())) == want, (name, unreadable)
            rows = [row for X, _ in file.batches(unreadable=unreadable) for row in X.tolist()]  # type: ignore[arg-type]
            assert Counter(map(tuple, rows)) == want, (name, unreadable)
            learned, scored = file.parts()
            out = RecordFile(tmp_path / name, "ill", kept_out=True, **terms).read()
            assert np.array_equal(learned.X, whole.X)
            assert np.array_equal(scored.X, out.X)
            assert np.array_equal(scored.y, out.y)


def test_a_gap_in_a_typed_column_moves_no_other_record_across_a_split() -> None:
    """A gap makes objects of integers, but for windows without one."""
    y = pandas.Series(np.arange(40_000) % 2, dtype="Int64")
    X = np.zeros((40_000, 2))
    whole = Split(0.5, 1).held_out(X, y)
    gaps = pandas.concat([y, pandas.Series([None], dtype="Int64")], ignore_index=True)
    assert np.array_equal(Split(0.5, 1).held_out(np.zeros((40_001, 2)), gaps)[:-1], whole)


CELLS = ps.Cells((ps.Categories("icd", ("042", "42", "7"), as_text=True), ps.Truth("smoker")))
SCHEMA = ps.ClassSchema(2, CELLS.width, "NA", 1.0, class_names=("no", "yes"), transform=(CELLS,))


@given(seed=st.integers(0, 1000), place=st.integers(0, 40))
@settings(max_examples=sized(30, 500))
def test_codes_that_a_plan_tells_apart_are_no_equal_records(seed: int, place: int) -> None:
    """``042`` and ``42`` are one number, and two texts where the plan declares texts."""
    rows = np.array([["042", "1"], ["42", "1"]] * 20, object)
    with_more = np.insert(rows, place, ["042", "1"], axis=0)
    parts = [Records(each, np.array(["yes"] * len(each), object)).summed(0.5, seed) for each in (rows, with_more)]
    one = flatten(ps.measure(SCHEMA, with_more[place : place + 1], ["yes"], unreadable="leave out"))
    few, many = (flatten(ps.measure(SCHEMA, each.X, each.y, unreadable="leave out")) for each in parts)
    assert not (many - few).any() or np.array_equal(many - few, one)


def test_codes_of_declared_columns_are_split_as_their_rows() -> None:
    codes = np.array([[0.0, 1.0], [np.nan, 1.0], [0.0, 1.0]] * 9)
    y = np.arange(27) % 2
    assert np.array_equal(Split(0.5, 1).held_out(Codes(codes, {}), y), Split(0.5, 1).held_out(codes, y))


def test_the_share_is_compared_in_all_and_by_class_and_single_coins_are_never_off() -> None:
    for seed in range(300):
        rng = np.random.default_rng(seed)
        n, share = int(rng.integers(1, 400)), float(rng.choice((0.001, 0.01, 0.25, 0.5)))
        split = Split(share, seed)
        split.held_out(np.zeros((n, 2)), rng.integers(0, 3, n))
        assert split.remark() == ""


def test_persons_with_uneven_rows_are_named_and_others_are_not() -> None:
    rng = np.random.default_rng(0)
    even = np.repeat(np.arange(400), 10)
    for seed in range(40):
        split = Split(0.25, seed)
        split.held_out(np.zeros((4000, 1)), rng.integers(0, 2, 4000), even)
        assert split.remark() == ""
    y = np.r_[np.ones(2000, int), np.zeros(4000, int)]  # all ill rows are one person's
    ids = np.r_[np.full(2000, 5000), np.arange(4000)]
    split = Split(0.25, 1)
    with pytest.warns(UnevenSplitWarning, match=r"X: .* of 2,000 records of the class '1' are held out \(.*%\)"):
        Records(np.zeros((6000, 1)), y, persons=ids).held_out(0.25, 1)
    for start in range(0, 6000, 500):  # batches count alike
        where = slice(start, start + 500)
        split.held_out(np.zeros((500, 1)), y[where], ids[where])
    assert "where the split asks for 25%; a person's rows stay together" in split.remark()


@pytest.mark.parametrize("kind", ["csv", "npz"])
def test_the_file_is_named_with_its_shares(kind: str, tmp_path: Path) -> None:
    y, ids = np.r_[np.ones(2000, int), np.zeros(4000, int)], np.r_[np.full(2000, 5000), np.arange(4000)]
    path = tmp_path / f"north.{kind}"
    if kind == "csv":
        pandas.DataFrame({"age": np.arange(6000) % 7, "ill": y, "pid": ids}).to_csv(path, index=False)
    else:
        np.savez(path, X=np.arange(6000)[:, None] % 7, y=y, pid=ids)
    file = RecordFile(path, "ill", split=0.25, seed=1, persons="pid")
    for act in (file.read, file.parts, lambda: list(file.batches())):
        with pytest.warns(UnevenSplitWarning, match=rf"north.{kind}: .*of the class '1'"):
            act()
    with warnings.catch_warnings(action="error", category=UnevenSplitWarning):
        RecordFile(path, "ill", split=0.25, seed=1).read()
