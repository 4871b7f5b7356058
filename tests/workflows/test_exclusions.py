"""Every reader states what its numbers assume of excluded records, where its plan may exclude one, and only there."""

import warnings
from collections.abc import Iterator
from dataclasses import replace
from functools import cache
from typing import Any

import numpy as np
import pytest

import privstats as ps
from privstats.errors import PlanError, PrivstatsError, ReleaseError
from privstats.heads.registry import HEADS
from privstats.kinds import KINDS
from privstats.moments.measurement import noted_moments
from privstats.plan.exclusions import ASSUMED, assumed_of_excluded, excludes_records
from privstats.randomness import seeded
from privstats.workflows.readers import possible
from privstats.workflows.tables import READERS, read
from tests import made
from tests.contrib.imputation import cases
from tests.contrib.site_levels import test_table as site_levels
from tests.inference import test_frame_columns as frames
from tests.inference import test_left_out as counted_out
from tests.moments.test_readable import published_of, records_of
from tests.workflows.test_plans_and_readers import (
    CLOCK,
    COHORT,
    ONE,
    STUDIES,
    TERMS,
    WARD,
    Study,
    asked,
    counted,
    labelled,
    planned,
    shards,
)

pytestmark = pytest.mark.filterwarnings("ignore::privstats.errors.UnreadableRecordsWarning")
inf = ps.inference
SENTENCE = ASSUMED.partition(" {")[0]
USUAL = ("no promise", "record", "average")
SEX = ps.Categories("sex", ("f", "m"), other=True, missing=True)
SPAN, ENDED = replace(CLOCK, missing=True), ps.Categories("died", (0, 1), missing=True)
WHOLE = replace(SPAN, open="both")
GAPS = ps.Cells(WARD.columns, missing="left out")


def events(count: int) -> tuple[Any, Any]:
    X, _ = records_of(ps.ScoreSchema(4, 2.0, transform=ONE), count)
    return X, np.random.default_rng(count).poisson(1.0, count)


def _patterns(count: int) -> tuple[Any, Any]:
    from privstats.contrib.imputation import by_gaps

    return by_gaps(cases.schema(), cases.table(count))


RATES = ps.ScoreSchema(4, 2.0, family="poisson", target_bound=4.0, rate=1.0, transform=ONE)
OWN = (
    planned("classes of complete cells", ps.ClassSchema(2, GAPS.width, "NAB", 1.0, transform=(GAPS,)), labelled),
    planned(
        "means of cells",
        ps.MeanSchema(WARD.width, 1.0, transform=(WARD,)),
        lambda count: (labelled(count)[0], np.zeros(count)),
    ),
    planned("counts of any record", ps.CountSchema((SEX, WHOLE), (("sex", "months"),)), counted),
    planned("counts of any event", ps.CountSchema((SPAN, ENDED), (("months", "died"),)), counted),
    planned("numbers with gaps", ps.CountSchema((), (), numbers=(ps.Number("hours", 0, 1, missing=True),)), counted),
    *([planned("patterns of gaps", cases.schema(), _patterns)] if "imputed" in READERS else []),
    Study("rates", lambda privacy: ps.Newton.start(RATES, COHORT, privacy, 3), events),
)
EVERY = {study.name: study for study in (*STUDIES, *OWN)}


def options(reader: str, schema: Any) -> dict[str, Any]:
    """What a user must name, so that a reader can be called at all."""
    if reader == "imputed":
        return {"outcome": "days" if schema.task == "classes" else "sex"}
    return asked(reader, schema)


@cache
def run(name: str, terms: str) -> tuple[ps.Plan, list[ps.Release]] | None:
    """A study's last plan and releases; None where its plan is refused."""
    privacy = None if TERMS[terms] is None else made.promise(**{"epsilon": 40.0, **TERMS[terms]})
    study = EVERY[name]
    try:
        what = study.start(ps.NoPrivacy() if privacy is None else privacy)
        released = ps.simulate(what, list(shards(study, privacy)), rng=seeded(0))
    except (PlanError, ReleaseError):
        return None
    releases = [released] if isinstance(released, ps.Release) else [each for each in released if each is not None]
    return (what if isinstance(what, ps.Plan) else what.priced[-1]), releases


def spoilt(study: Study) -> Iterator[tuple[Any, Any]]:
    """Records of which one column, or the label or target, holds nothing, or what no plan lists."""
    X, y = study.records(8)
    columns = list(X) if isinstance(X, dict) else range(np.asarray(X).shape[1])
    for hole in (None, "?"):
        for column in columns:
            if isinstance(X, dict):
                yield {**X, column: [hole] * 8}, y
            else:
                rows = np.asarray(X, object).copy()
                rows[:, column] = hole
                yield rows, y
        if y is not None:
            yield X, np.full(np.shape(y), hole, object)


def excludes(name: str, plan: ps.Plan) -> bool:
    """Whether some record is in no sum of a plan, by measuring such records."""
    if plan.unreadable == "refuse":
        return plan.schema.excludes_gaps
    study = EVERY[name]
    if plan.privacy.unit == "person":  # type: ignore[union-attr]
        return True
    for X, y in spoilt(study):
        published = published_of(plan.schema)  # a course's last plan names values that its rounds find
        _, notes = noted_moments(plan.schema, X, y, published=published, unreadable="leave out")
        if notes.left_out.records:
            return True
    return False


def tables(name: str, terms: str) -> Iterator[tuple[str, Any, ps.Plan]]:
    """Every table that a reader prints of a study."""
    found = run(name, terms)
    for reader, row in READERS.items() if found else ():
        plan, releases = found
        if not row.accepts(plan):
            continue
        try:
            yield reader, read(reader, releases, **options(reader, plan.schema)).summary, plan
        except PrivstatsError:
            continue  # noise hides it


def check(name: str, terms: str) -> set[str]:
    printed = set()
    for reader, summary, plan in tables(name, terms):
        lines = [*summary.foot, *([summary.methods] if summary.methods else [])]
        stated = [SENTENCE in line for line in lines if "Assumed: " in line]
        gaps = isinstance(plan.schema, ps.CountSchema) and any(each.missing for each in plan.schema.read)
        known = gaps and reader not in ("proportions", "missing", "imputed")
        wanted = excludes(name, plan) or known
        assert stated == [wanted] * len(stated), (reader, lines)
        assert stated or not wanted, reader
        assert wanted == any(line.startswith("Excluded ") for line in summary.foot), reader
        assert wanted == any("impute gaps, on sums or through cells of counts" in line for line in summary.foot), reader
        printed.add(reader)
    return printed


@pytest.mark.parametrize("terms", USUAL)
@pytest.mark.parametrize("name", EVERY)
def test_a_table_states_what_it_assumes_of_excluded_records_where_a_record_can_be_one(name: str, terms: str) -> None:
    check(name, terms)


def test_every_reader_of_the_command_is_tried() -> None:
    """A new reader fails here until a study has its sums, and then until it prints the sentence."""
    under = {terms: {reader for name in EVERY for reader, *_ in tables(name, terms)} for terms in USUAL[:2]}
    assert set(READERS) - under["record"] == {"site-levels", "mixed"} & set(READERS)  # of twenty sites: below


def test_a_random_intercept_has_several_pulls_which_have_no_promise() -> None:
    pulls = ps.SitesSchema(5, 4.0, pulls=(0.4, 4.0), transform=ONE)
    made.refused(PlanError, "set NoPrivacy", made.plan, pulls, COHORT, made.promise())
    assert not any(SENTENCE in line for line in frames._mixed().summary().foot)


def test_tables_of_columns_by_site_state_it_too() -> None:
    found = read("site-levels", site_levels.noisy(16.0), columns=["age", "dose"]).summary
    assert any(SENTENCE in line for line in found.foot)
    plain = read("site-levels", site_levels.exact(), columns=["age", "dose"]).summary
    assert not any(SENTENCE in line for line in plain.foot)


@pytest.mark.parametrize("name", EVERY)
def test_the_plan_says_it_as_measuring_does(name: str) -> None:
    for terms in USUAL:
        if found := run(name, terms):
            assert excludes_records(found[0]) == excludes(name, found[0])
            assert bool(assumed_of_excluded(found[0])) == excludes(name, found[0])


def test_some_plan_of_each_side_is_tried() -> None:
    sides = {excludes(name, found[0]) for name in EVERY for terms in USUAL[:2] if (found := run(name, terms))}
    total = [name for name in EVERY if (found := run(name, "record")) and not excludes(name, found[0])]
    assert sides == {True, False}
    assert {"counts of any record", "means of cells"} <= set(total)
    assert {each.task for each in KINDS.values() if each.ignorable != "its values"} >= {
        "ridge",
        "score",
        "hazard",
        "effect",
    }


@pytest.mark.parametrize("terms", ["no promise", "record"])
@pytest.mark.parametrize("name", [name for name, study in EVERY.items() if "classes" in name or "ridge" in name])
def test_the_card_of_a_head_states_it_where_its_plan_promises(name: str, terms: str) -> None:
    found = run(name, terms)
    for head in (each for each in possible(found[0]) if each in HEADS) if found else ():
        try:
            fitted = getattr(ps.heads, head)().fit_release(found[1][0])
        except (PrivstatsError, ValueError):
            continue
        card = fitted.card()
        assert (SENTENCE in card) == (terms == "record"), head


def test_the_number_of_excluded_records_stands_where_the_release_has_it() -> None:
    chance = np.random.default_rng(0)
    table: dict[str, Any] = {"months": chance.integers(0, 12, 400).astype(object), "died": chance.integers(0, 2, 400)}
    table["months"][:25] = None
    schema = ps.CountSchema((SPAN, ENDED), (("months", "died"),))
    exact = ps.Release.exact(schema, ps.measure(schema, table))
    curve = inf.kaplan_meier(exact, time="months", event="died", times="discrete")
    text = " ".join(str(curve.summary()).split())
    assert "Excluded here are released records with a gap: in months or died 25." in text
    plan = made.plan(schema, ps.Cohort(2, 2, 1_000), made.promise(epsilon=8.0))
    parts = [
        ps.measure(schema, {name: each[k::2] for name, each in table.items()}, unreadable="leave out") for k in (0, 1)
    ]
    noisy = ps.session.aggregate_unmasked(plan, parts, seeded(0))
    text = " ".join(str(inf.kaplan_meier(noisy, time="months", event="died", times="discrete").summary()).split())
    assert "in months or died" in text
    assert "(standard error of the noise" in text


def test_an_effect_states_the_number_that_its_plan_counts() -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        text = " ".join(str(inf.effects(counted_out.played(60.0, 1)).summary()).split())
    assert "Excluded are records that a party cannot read, such as records with a gap: 21" in text
    assert "does not depend on its outcome." in text
