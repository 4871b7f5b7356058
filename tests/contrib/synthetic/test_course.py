"""Sessions of a synthetic table share one promise, and each follows from the releases before it."""

import math
from dataclasses import replace
from itertools import pairwise

import numpy as np
import pytest

import privstats as ps
from privstats.contrib.synthetic import course as course_module
from privstats.contrib.synthetic.columns import coded, schema_of
from privstats.contrib.synthetic.course import Synthetic
from privstats.course import iter_rounds, verify_next
from privstats.course.promise import Promise
from privstats.errors import PlanError
from privstats.schema import COUNT_SCALE
from tests.contrib.synthetic.cases import COLUMNS, course, released


@pytest.mark.parametrize("epsilon", [0.3, 1.0, 10.0])
@pytest.mark.parametrize("columns", [COLUMNS, COLUMNS[:3]])
def test_the_sum_of_the_sessions_promises_is_the_courses(epsilon, columns):
    own = course(epsilon, columns)
    assert own.most == (3 if len(columns) > 3 else 2)
    assert math.isclose(own.mu, math.hypot(*(plan.noise.mu for plan in own.priced)))
    assert own.epsilon(1e-6) <= epsilon * (1 + 1e-9)
    assert math.isclose(own.epsilon(1e-6), epsilon, rel_tol=1e-6)


def test_every_plan_costs_what_was_priced_before_any_record_was_read():
    own, releases = released()
    assert [release.plan.noise.mu for release in releases] == [plan.noise.mu for plan in own.priced]
    assert sum(release.plan.noise.mu**2 for release in releases) <= own.mu**2 * (1 + 1e-12)


def test_plans_follow_from_releases_alone():
    own, releases = released()
    again = Synthetic(own.plan, share=own.share, screen=own.screen, levels=own.levels)
    for place, release in enumerate(releases):
        assert verify_next(again, release.plan, releases[:place]).place == place
    assert own.next(releases) is None


def test_pairs_that_do_not_follow_from_the_releases_are_refused(monkeypatch):
    """Planted: a server that picks pairs itself, as one who looked at a party's records would."""
    own, releases = released()
    with monkeypatch.context() as planted:
        planted.setattr(course_module, "chosen_pairs", lambda screened: ((0, 4), (1, 3)))
        wished = own.next(releases[:2])
    with pytest.raises(PlanError):
        verify_next(Synthetic(own.plan, share=own.share, screen=own.screen, levels=own.levels), wished, releases[:2])


def test_pairs_that_go_together_are_measured():
    own, releases = released()
    pairs = own.pairs(releases)
    assert {("age", "ward"), ("ward", "icd"), ("age", "death")} <= set(pairs)
    assert sum(bool({"smoker", "admitted"} & set(pair)) for pair in pairs) <= 2  # of nine that stand alone


def test_no_pair_is_finer_than_its_levels():
    own, releases = released()
    for release in releases[1:]:
        assert all(len(each.cells) <= own.levels + 2 for each in release.plan.schema.variables)


def test_noise_and_room_alone_limit_the_cells():
    """Half a year of days twice: with little noise the declared cells stay, with more they are merged."""
    columns = [ps.Numeric(name, tuple(range(121))) for name in ("start", "end")]
    rng = np.random.default_rng(0)
    first = rng.integers(0, 120, 40_000)
    part = {"start": first + 0.5, "end": (first + rng.integers(0, 5, 40_000)) % 120 + 0.5}
    sizes = []
    for epsilon in (0.3, 3.0, 30.0):
        own = Synthetic.within(replace(course(epsilon, columns).plan, cohort=ps.Cohort(2, 2, 50_000)))
        release = ps.simulate(
            own.first, [(coded(columns, part), None), (coded(columns, {n: v[:0] for n, v in part.items()}), None)]
        )
        sizes.append(len(own.variables([release])[0].cells))
    assert sizes[0] < sizes[1] <= sizes[2] == 121
    assert sizes[0] > 16 + 1


def test_what_is_measured_fits_into_a_session():
    many = [ps.Numeric(f"x{k}", tuple(range(251))) for k in range(20)]
    own = course(100.0, many)
    counts = np.full(own.plan.layout.size, 1_000)
    fine = own.variables([ps.Release(own.first, counts * COUNT_SCALE, (0, 1), reproducible=True)])
    assert 40 < len(fine[0].cells) < 100
    assert sum(len(a.cells) * len(b.cells) for a, b in pairwise(fine)) <= ps.CountSchema.max_cells


@pytest.mark.parametrize("lost", [0, 1])
def test_a_session_without_a_sum_leaves_public_cells_and_pairs(lost):
    own, _ = released()
    releases = []
    for round_ in iter_rounds(own, releases):
        releases.append(None if round_.place == lost else _empty(round_.plan))
    assert len(releases) == own.most
    if lost == 1:
        assert own.pairs(releases)[0] == ("age", "ward")


def _empty(plan):
    rng = np.random.default_rng(0)
    return ps.Release(plan, rng.integers(0, 9, plan.layout.size), (0, 1), reproducible=True)


def test_a_release_of_another_course_is_refused():
    own, releases = released()
    other = course(4.0)
    with pytest.raises(PlanError, match="release 0 is not of this course"):
        other.next(releases[:1])
    with pytest.raises(PlanError, match="release 1 is not of this course"):
        own.next([releases[0], releases[0]])


def _plan(**changes):
    return replace(course().plan, **changes)


@pytest.mark.parametrize(
    ("wrong", "message"),
    [
        (lambda: Synthetic.within(_plan(privacy=ps.NoPrivacy())), "needs differential privacy"),
        (lambda: Synthetic("plan"), "plan must be a Plan"),
        (lambda: course(share=0.0), "share must be a number"),
        (lambda: course(screen=2), "screen must be a number"),
        (lambda: course(share=0.6, screen=0.38), "leave a twentieth"),
        (lambda: course(levels=1), "levels must be an integer"),
        (lambda: Synthetic.within(_plan(schema=ps.ClassSchema(2, 2, "NA", 1.0))), "drawn from counts"),
        (lambda: course(columns=COLUMNS[:1]), "2 to 60 variables"),
        (
            lambda: Synthetic.within(_plan(schema=replace(schema_of(COLUMNS), tables=(("age", "ward"),)))),
            "each of 2 to 60 variables by itself",
        ),
        (lambda: replace(course(), promise=Promise(0.1, 1e-6)), "all rounds together cost"),
    ],
)
def test_wrong_courses_are_refused(wrong, message):
    with pytest.raises(PlanError, match=message):
        wrong()


def test_sixty_columns_are_planned():
    own = course(columns=[ps.Numeric(f"x{k}", tuple(range(30))) for k in range(60)])
    assert own.most == 3


def test_a_session_with_any_pairs_is_no_longer_than_its_bytes_say():
    """Where not all pairs fit into one session, a few with more cells may fill it."""
    own, releases = released()
    fine, coarse = own._cells(releases[0])
    screening, pairs = (phase.longest for phase in own.phases.phases[1:])
    assert own._measuring(fine, own.all_pairs).layout.size <= pairs.layout.size < ps.CountSchema.max_cells
    assert own._screening(coarse).layout.size <= screening.layout.size
    wide = course(columns=[ps.Numeric(f"x{k}", tuple(range(101))) for k in range(12)])
    assert wide.phases.phases[-1].longest.layout.size == ps.CountSchema.max_cells


def test_a_course_holds_its_columns_in_its_file_and_digest(tmp_path):
    own = course(columns=COLUMNS)
    declared = Synthetic(own.plan, promise=own.promise, columns=COLUMNS)
    assert declared.declared == COLUMNS
    assert own.declared == ()
    assert own.digest != declared.digest
    salted = (*COLUMNS[:4], replace(COLUMNS[4], salt="2025"), COLUMNS[5])
    assert declared.digest != Synthetic(own.plan, columns=salted).digest
    ps.course.write(tmp_path / "study.toml", declared)
    again = ps.course.read(tmp_path / "study.toml")
    assert again == declared
    assert again.digest == declared.digest
    assert "[[course.columns]]" in (tmp_path / "study.toml").read_text()
    ps.course.write(tmp_path / "plain.toml", own)
    assert "columns" not in (tmp_path / "plain.toml").read_text()


def test_columns_that_are_not_the_plans_are_refused():
    own = course()
    with pytest.raises(PlanError, match="columns must declare the plan's variables, in order"):
        Synthetic(own.plan, columns=COLUMNS[::-1])
    assert Synthetic.full_plan(COLUMNS, cohort=own.plan.cohort, privacy=own.plan.privacy).schema == own.schema


def test_a_merged_column_of_as_many_cells_reads_its_own_values():
    """Five values and a gap, of which the model has four, the others and a gap: six cells each."""
    whole = ps.Categories("stage", (1, 2, 3, 4, 5), missing=True)
    own = ps.Categories("stage", (1, 3, 4, 5), other=True, missing=True)
    counts, (lumps,) = course_module._in_cells((whole,), (own,), np.array([10.0, 20.0, 30.0, 40.0, 50.0, 6.0]))
    assert counts.tolist() == [10.0, 30.0, 40.0, 50.0, 20.0, 6.0]
    assert lumps.tolist() == [0, 1, 2, 3, 4, 5]
