"""A bound that cuts most of the records is told to their holder in one sentence, whichever way they are measured."""

import warnings
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import privstats as ps
from privstats.moments import exact_moments, warn_if_clipped
from privstats.moments.clip_report import PRIVATE, ClipTally
from privstats.schema.public_values import Published, Values
from tests import made

ROWS = np.random.default_rng(0).uniform(20, 80, (50, 2))  # years
LABELS = np.arange(50) % 2
CLASSES = ps.ClassSchema(2, 2, "NAB", clip_norm=3.0)
LINE = ps.RidgeSchema(2, clip_norm=200.0, target_bound=1.0)
SHARDS = [(ROWS[k::2], LABELS[k::2]) for k in range(2)]
CENTRAL = ps.Privacy(model="central", unit="record", adjacency="add-remove", epsilon=1.0, delta=1e-5)


def plan(schema: Any, privacy: Any = None) -> ps.Plan:
    return made.plan(schema, ps.Cohort(2, 2, max_records=100), privacy or ps.NoPrivacy())


def course() -> ps.Rounds:
    schema = ps.ClassSchema(2, 2, "NAB", 1.0, transform=(ps.transforms.Scale((0.1, 0.1)), ps.transforms.UnitNorm()))
    return ps.Rounds.within(plan(schema, CENTRAL), rounds=1)


def told(measured: Any) -> list[str]:
    with warnings.catch_warnings(record=True) as said:
        warnings.simplefilter("always")
        measured()
    files = {each.filename for each in said if each.category is ps.ClippedWarning}
    assert files <= {__file__}, "the warning points at the caller"
    return [str(each.message) for each in said if each.category is ps.ClippedWarning]


def epochs(schema: Any) -> None:
    ps.simulate(ps.Stream(plan(schema, CENTRAL), epochs=2), [SHARDS, SHARDS])


WAYS = {
    "measure": lambda: ps.measure(CLASSES, ROWS, LABELS),
    "batches": lambda: ps.measure(CLASSES, SHARDS),
    "simulate": lambda: ps.simulate(plan(CLASSES), SHARDS),
    "the cost of a simulation": lambda: ps.workflows.simulate.run(plan(CLASSES), SHARDS),
    "one party alone": lambda: ps.private_release(CLASSES, CENTRAL, ROWS, LABELS, ledger="uncharged"),
}


@pytest.mark.parametrize("way", WAYS.values(), ids=WAYS)
def test_a_clip_of_every_row_is_one_sentence(way: Any) -> None:
    (sentence,) = told(way)
    assert sentence.startswith("clip_norm shortens 100% of the rows of X, so little but their directions remains")
    assert sentence.endswith("this share is exact, and no privacy protects it: treat it as you treat the records")


def test_a_stream_is_told_in_its_first_epoch() -> None:
    with pytest.warns(ps.ClippedWarning) as said:
        epochs(CLASSES)
    assert len(said) == 1


def test_rows_of_norm_1_are_no_news_in_any_round() -> None:
    assert told(lambda: ps.simulate(course(), SHARDS)) == []


def test_shortened_targets_are_told_beside_rows_that_are_not() -> None:
    (sentence,) = told(lambda: ps.measure(LINE, ROWS, ROWS[:, 0]))
    assert sentence.startswith("target_bound shortens 100% of the targets, which pulls every slope to 0")


def test_a_private_regression_tells_its_holder_of_shortened_targets() -> None:
    terms = {"epsilon": 1.0, "delta": 1e-5, "adjacency": "add-remove", "clip_norm": 200.0, "target_bound": 1.0}
    with pytest.warns(ps.ClippedWarning, match="target_bound shortens 100% of the targets"):
        head = ps.heads.Ridge().fit_private(ROWS, ROWS[:, 0], ledger="uncharged", **terms)  # type: ignore[arg-type]
    shown = {name for name in vars(head) if "clip" in name or "target" in name}
    assert shown == {"clip_"}, "a head may be shown; the clip of residuals follows from releases"


@given(st.integers(0, 40), st.integers(1, 40))
def test_remarks_begin_above_nine_rows_in_ten_and_one_target_in_ten(long: int, others: int) -> None:
    rows = np.array([[3.0, 0.0]] * long + [[0.5, 0.0]] * others)
    schema = ps.RidgeSchema(2, clip_norm=1.0, target_bound=1.0)
    share = long / (long + others)
    found = exact_moments(schema, rows, rows[:, 0]).clip_report.remarks  # type: ignore[attr-defined]
    assert any(each.startswith("clip_norm") for each in found) is (share > 0.9)
    assert any("target_bound" in each for each in found) is (share > 0.1)


def test_rows_of_whole_parties_may_all_be_shortened_to_one_length() -> None:
    schema = ps.PartySchema(2, 2)
    assert told(lambda: ps.measure(schema, ROWS, LABELS)) == []
    assert told(lambda: ps.simulate(plan(schema), SHARDS)) == []


def test_parts_are_judged_together_and_nothing_is_said_of_nothing() -> None:
    short, long = (exact_moments(CLASSES, [[size, 0.0]], [0]) for size in (0.5, 9.0))
    assert told(lambda: warn_if_clipped(short, long, stacklevel=2)) == []
    assert (len(told(lambda: warn_if_clipped(long, stacklevel=2))), told(warn_if_clipped)) == (1, [])
    assert (ClipTally(2, 16).report().remarks, told(lambda: ps.measure(CLASSES, ROWS[:0], LABELS[:0]))) == ((), [])


COUNTS = ps.ScoreSchema(2, clip_norm=2.0, family="poisson", target_bound=5.0)
START = Published.of({"w": Values.rounded(np.zeros(2))})


def events(above: int, others: int) -> tuple[Any, Any]:
    rows = np.random.default_rng(0).uniform(-1, 1, (above + others, 2))
    rows[0] = 3.0
    return rows, np.array([5.5] * above + [5.0] * others)


@given(st.integers(1, 3), st.integers(500, 6_000))
def test_a_cut_of_one_count_in_2_000_is_told(above: int, others: int) -> None:
    rows, counts = events(above, others)
    report = exact_moments(COUNTS, rows, counts, published=START).clip_report  # type: ignore[attr-defined]
    assert (report.records, report.clipped, report.targets_clipped) == (above + others, 1, above)
    assert any("of the counts" in each for each in report.remarks) is (above / (above + others) > 0.0005)
    parts = [exact_moments(COUNTS, rows[k::2], counts[k::2], published=START) for k in range(2)]
    assert (parts[0] + parts[1]).clip_report == report  # type: ignore[attr-defined]
    own = exact_moments(ps.RidgeSchema(2, clip_norm=2.0, target_bound=5.0), rows, counts).clip_report  # type: ignore[attr-defined]
    assert replace(report, counts=False) == own, "the report of any other regression on these records"


def test_rounds_of_counts_tell_their_holder_of_the_cut() -> None:
    rows, counts = events(3, 997)
    (sentence,) = told(lambda: ps.measure(COUNTS, rows, counts, published=START))
    assert sentence.startswith("target_bound cuts 0.30% of the counts, which pulls coefficients to 0")
    assert sentence.endswith("this share is exact, and no privacy protects it: treat it as you treat the records")
    constant = (ps.transforms.ConstantFeature(1.0),)
    schema = ps.ScoreSchema(3, clip_norm=2.0, family="poisson", target_bound=5.0, rate=4.0, transform=constant)
    rounds = ps.Newton.start(schema, ps.Cohort(2, 2, 2_000), replace(CENTRAL, epsilon=20.0))
    shards = [(rows[k::2], counts[k::2]) for k in range(2)]
    assert set(told(lambda: ps.simulate(rounds, shards))) == {sentence}
    ids = [f"p{k}" for k in range(1_000)]
    privacy = made.promise(unit="person", max_records_per_person=2, person_clip=1.0)
    persons: Any = {"published": START, "persons": ids, "person_clip": ps.dp.person_clip(COUNTS, privacy)}
    assert told(lambda: ps.measure(COUNTS, rows, counts, **persons)) == [sentence]


@given(
    norms=st.lists(st.floats(0, 2.0**20), max_size=30).map(np.array),
    at=st.lists(st.integers(0, 30), max_size=4).map(sorted),
)
def test_a_tally_of_pieces_is_the_sum_of_their_reports_and_the_report_of_all(norms: Any, at: list[int]) -> None:
    def tally(*pieces: Any) -> ClipTally:
        result = ClipTally(2, 16, counts=True)
        for piece in pieces:
            long = int((piece > 16).sum())
            result.add(piece, clipped=long, energy=3 * len(piece), targets_clipped=len(piece) // 2)
        return result

    pieces = np.split(norms.astype(float), at)
    reports = [tally(piece).report() for piece in pieces]
    assert tally(*pieces).report() == sum(reports[1:], reports[0])
    whole, parts = tally(norms.astype(float)).report(), tally(*pieces).report()
    assert (whole.records, whole.clipped, whole.norm_counts) == (len(norms), parts.clipped, parts.norm_counts)


def test_records_without_numbers_are_in_no_report() -> None:
    rows, counts = events(2, 10)
    rows[5, 0], counts[6] = np.nan, np.nan
    left: Any = exact_moments(COUNTS, rows, counts, published=START, unreadable="leave out")
    assert (left.records, left.clip_report.records, left.clip_report.targets_clipped) == (10, 10, 2)


def rows_of(kind: str, share: float, code: float, records: int = 4_000) -> Any:
    """Rows within a declared range of 0 to 10 in three columns, a share of them with a code in the first."""
    rng = np.random.default_rng(0)
    X = {"even": rng.uniform(0, 10, (records, 3)), "heavy": np.clip(5 + 2 * rng.standard_t(3, (records, 3)), -200, 200)}
    rows = X[kind]
    rows[: round(share * records), 0] = code
    return rows


RANGED = ps.RidgeSchema(
    4, clip_norm=2.0, target_bound=2.0,
    transform=(ps.transforms.Centre((5.0,) * 3), ps.transforms.Scale((5.0,) * 3), ps.transforms.ConstantFeature(1.0)),
)  # fmt: skip


def alike(rows: Any) -> list[str]:
    return [each for each in told(lambda: ps.measure(RANGED, rows, np.zeros(len(rows)))) if "gap code" in each]


@pytest.mark.parametrize("kind", ["even", "heavy"])
@pytest.mark.parametrize("code", [99.0, -99.0, 999.0, -9999.0, 1e9])
@pytest.mark.parametrize("share", [0.0025, 0.02, 0.3])
def test_a_gap_code_that_nobody_declared_is_named_by_its_share(kind: str, share: float, code: float) -> None:
    (sentence,) = alike(rows_of(kind, share, code))
    assert sentence.startswith(f"{share:.2%} of the rows ")
    assert sentence.endswith(PRIVATE)


@given(st.sampled_from(["normal", "lognormal", "t", "cauchy", "exponential"]), st.floats(0.05, 20), st.integers(0, 99))
def test_rows_of_smooth_lengths_are_no_gap_codes(law: str, spread: float, seed: int) -> None:
    rng = np.random.default_rng(seed)
    size = (4_000, 3)
    drawn = {"normal": rng.normal(size=size), "lognormal": rng.lognormal(size=size), "t": rng.standard_t(3, size),
             "cauchy": rng.standard_cauchy(size), "exponential": rng.exponential(size=size)}  # fmt: skip
    report: Any = exact_moments(RANGED, 5 + spread * 5 * drawn[law], np.zeros(size[0]))
    assert report.clip_report.far_and_alike == (0, 0.0)


def test_few_rows_or_most_of_them_are_no_gap_code() -> None:
    for share in (0.0, 9 / 4_000, 0.6):
        assert alike(rows_of("even", share, 999.0)) == []


def test_what_a_party_is_warned_of_moves_no_sum_of_another_record() -> None:
    """The warning follows from all rows; what a row adds follows from that row alone."""
    rows = rows_of("even", 0.02, 999.0)
    whole, parts = (
        exact_moments(RANGED, rows, np.zeros(4_000)),
        [exact_moments(RANGED, rows[part], np.zeros(len(rows[part]))) for part in (slice(80), slice(80, None))],
    )
    assert parts[0] + parts[1] == whole
