"""A split of persons: all rows of one on one side, by the id and the seed alone, however the id is written."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from privstats.errors import DataError
from privstats.intake.person_ids import persons_held_out
from privstats.moments import RecordFile, Records
from tests.moments.test_persons import NOBODY

pandas = pytest.importorskip("pandas")
IDS = st.lists(
    st.one_of(st.integers(-9, 9), st.text("ab1 ", max_size=3), st.none(), st.floats()), min_size=1, max_size=40
)


@given(ids=IDS, others=IDS, share=st.floats(0.01, 0.99), seed=st.integers(0, 2**32))
def test_the_side_of_a_person_follows_from_the_id_and_the_seed_alone(ids, others, share, seed):
    """Beside whomever, in any order, and more persons stay out of a larger share."""
    found = persons_held_out([*ids, *others], share, seed)
    assert np.array_equal(found[: len(ids)], persons_held_out(ids, share, seed))
    assert np.array_equal(found[::-1], persons_held_out([*ids, *others][::-1], share, seed))
    assert not (found & ~persons_held_out([*ids, *others], min(0.999, 1.5 * share), seed)).any()


@pytest.mark.parametrize("seed", range(4))
def test_an_id_is_on_one_side_however_it_is_written(seed: int) -> None:
    numbers = np.arange(50)
    want = persons_held_out(numbers, 0.5, seed)
    assert 10 < want.sum() < 40
    written: list[Any] = [
        [str(each) for each in numbers],
        [f" {each:03d}.0" for each in numbers],
        numbers.astype(float),
    ]
    written += [pandas.Series(numbers), [np.int8(each) for each in numbers], numbers.astype(object)]
    for ids in written:
        assert np.array_equal(persons_held_out(ids, 0.5, seed), want)
    assert not np.array_equal(persons_held_out(numbers, 0.5, seed + 1), want)


def test_two_that_differ_are_two_and_nobody_is_held_out() -> None:
    apart = [
        persons_held_out(pair, 0.5, seed)
        for pair in (("A1e5", "A10e4"), ("A1.5", "A1.50"), ("Nan na", "Null"))
        for seed in range(64)
    ]
    assert 0.3 < np.mean([one != other for one, other in apart]) < 0.7
    assert not any(persons_held_out([nobody], 0.999, seed).any() for nobody in NOBODY for seed in range(9))


@given(seed=st.integers(0, 2**32), share=st.sampled_from([0.2, 0.5, 0.8]))
def test_about_the_share_of_persons_is_held_out(seed: int, share: float) -> None:
    found = persons_held_out([f"patient {place}" for place in range(2000)], share, seed)
    assert abs(found.mean() - share) < 6 * np.sqrt(share * (1 - share) / 2000)


@pytest.mark.parametrize("kind", ["csv", "parquet", "npz"])
def test_a_file_has_no_person_on_both_sides(kind: str, tmp_path: Path) -> None:
    rng, path = np.random.default_rng(0), tmp_path / f"visits.{kind}"
    X, y, ids = rng.normal(size=(90, 2)), rng.integers(0, 2, 90), np.array([f"anna {row // 3}" for row in range(90)])
    frame = pandas.DataFrame(X, columns=["age", "dose"]).assign(ill=y, pid=ids)
    if kind == "csv":
        frame.to_csv(path, index=False)
    elif kind == "parquet":
        pytest.importorskip("pyarrow")
        frame.to_parquet(path)
    else:
        np.savez(path, X=X, y=y, pid=ids)
    how: dict[str, Any] = {"split": 0.4, "seed": 2, "persons": "pid"}
    parts = [RecordFile(path, None if kind == "npz" else "ill", kept_out=out, **how) for out in (False, True)]
    summed, kept = (part.read() for part in parts)
    assert set(summed.persons) | set(kept.persons) == set(ids)
    assert not set(summed.persons) & set(kept.persons)
    assert 0 < len(kept.X) < 90 == len(kept.X) + len(summed.X)
    for part, whole in zip(parts, (summed, kept), strict=True):
        batches = list(part.batches())
        assert np.array_equal(np.concatenate([rows for rows, _ in batches]).astype(float), whole.X)
    learned, scored = parts[0].parts()
    assert np.array_equal(learned.X, summed.X)
    assert np.array_equal(scored.X, kept.X)


def test_ids_of_other_rows_are_refused() -> None:
    with pytest.raises(DataError, match="X has 3 rows and persons 2 ids; pass one id for each row"):
        Records(np.ones((3, 2)), np.zeros(3), persons=np.array([1, 2])).held_out(0.5, 1)
