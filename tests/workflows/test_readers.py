"""What a head reads of a release is what changes it, and what no chosen head reads is said with its price."""

import json
import math
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

import privstats as ps
from privstats.encoding import layout_of
from privstats.errors import PlanError, ReleaseError
from privstats.heads.registry import HEADS, able, named
from privstats.inference.releases import require_gaussian, require_records
from privstats.randomness import seeded
from privstats.schema.public_values import Published
from privstats.workflows.readers import possible, suggested, unread_statistics
from privstats.workflows.tables import READERS
from privstats.workflows.tables.reader import refusal
from tests import made
from tests.heads.conftest import quick
from tests.made import refused
from tests.schema.samples import PROMISED

Y = np.arange(90) % 3
X = np.random.default_rng(0).normal(size=(90, 4)) * 0.3 + np.eye(3, 4)[Y]
PRIVACY = made.promise(epsilon=3.0)


def plan_of(statistics: str = "NABD", **privacy: Any) -> ps.Plan:
    return made.plan(ps.ClassSchema(3, 4, statistics, clip_norm=1.0), ps.Cohort(3, 3, 90), replace(PRIVACY, **privacy))


@pytest.mark.parametrize("statistics", ["NAB", "NAD", "NAS", "NABD"])
def test_a_head_reads_what_changes_it_and_nothing_else(statistics: str) -> None:
    schema = ps.ClassSchema(3, 4, statistics, clip_norm=3.0)
    release = ps.private_release(schema, PRIVACY, X, Y, ledger="uncharged", rng=seeded(1), allow_reproducible=True)
    for name in set(able(statistics)) & set(named("classes", trained=False)):
        told = quick(name).fit_release(release).decision_function(X)
        changed = ""
        for letter in statistics:
            other = quick(name).fit_release(moved(release, letter)).decision_function(X)
            changed += "" if np.array_equal(told, other) else letter
        assert HEADS[name].reads(statistics) == changed, name


def moved(release: ps.Release, letter: str) -> ps.Release:
    """The release with other numbers in one statistic."""
    vector, start = release.vector.copy(), 0
    for segment in layout_of(release.plan.schema).segments:
        if segment.statistic == letter:
            vector[start : start + segment.size] += 3 * int(segment.scale) + np.arange(segment.size) % 7
        start += segment.size
    return replace(release, vector=vector)


PROMISES: dict[str, dict[str, Any]] = {
    "record": {},
    "delta = 0": {"delta": 0.0},
    "client": {"unit": "client", "max_records_per_client": 4},
    "client clip": {"unit": "client", "max_records_per_client": 4, "client_clip": 3.0},
    "person clip": {"unit": "person", "max_records_per_person": 4, "person_clip": 4.0},
    "average": {"unit": "person", "person_clip": "average"},
}


@pytest.mark.parametrize("promise", PROMISES)
@pytest.mark.parametrize("schema", PROMISED, ids=lambda schema: schema.task)
def test_what_tables_refuse_after_a_session_is_said_of_its_plan(schema: Any, promise: str) -> None:
    """A score of clipped persons was planned and checked, and after the session no table could be read from it."""
    published = Published("1" * 64) if schema.needs else None
    try:
        plan = ps.Plan(
            schema=schema,
            cohort=ps.Cohort(2, 2, 90),
            privacy=replace(PRIVACY, **PROMISES[promise]),
            published=published,
        )
    except PlanError:
        return  # no such plan
    refusals = 0
    for require in (require_records, require_gaussian):
        try:
            require(ps.Release(plan, np.zeros(plan.layout.size, np.int64), (0, 1)))
        except ReleaseError:
            refusals += 1
    assert bool(refusal(plan)) == bool(refusals)
    tables = [name for name, table in READERS.items() if table.proposed and schema.task in table.letters]
    assert not (refusals and set(tables) & set(possible(plan)))
    said = unread_statistics(plan).sentences()
    assert any("no table or head reads" in each for each in said) == bool(refusals and tables and not possible(plan))


def test_a_letter_that_the_chosen_heads_do_not_read_has_its_price() -> None:
    found = unread_statistics(plan_of(), ["LDA"])
    assert (found.letters, found.share) == (("D",), pytest.approx(0.065))
    assert found.gain == pytest.approx({"N": 1.0, "A": 1.0, "B": math.sqrt(0.5)})  # B gets what D had
    assert "LDA reads not D, which takes 6.5% of the budget" in found.sentences()[1]
    assert "noise on B 29% smaller" in found.sentences()[1]
    assert unread_statistics(plan_of(), ["LDA", "NaiveBayes"]).letters == ()
    assert unread_statistics(plan_of("NAB"), ["LDA"]).letters == ()


def test_written_shares_go_to_the_others_in_proportion() -> None:
    found = unread_statistics(
        plan_of(shares={"N": 0.1, "A": 0.4, "B": 0.3, "D": 0.2}, adjacency="replace-one"), ["LDA"]
    )
    assert (found.share, len({round(value, 6) for value in found.gain.values()})) == (pytest.approx(0.2), 1)
    assert math.sqrt(0.7) < found.gain["B"] < 1


def test_without_a_head_the_first_that_the_plan_can_build_is_taken() -> None:
    found = unread_statistics(plan_of())
    assert (found.chosen, found.assumed, found.letters) == (("LDA",), True, ("D",))
    assert "LDA (the first reader for this plan; choose with --for) reads not D" in found.sentences()[1]
    assert unread_statistics(plan_of("NAD")).heads == ("NaiveBayes",)
    first, *others, last = found.readers["D"]
    assert (first, last) == ("NaiveBayes", "table-one")
    assert {"FisherMix", "ProtoHyper"} & set(HEADS) <= set(others)
    assert "LDA" not in others


def test_without_noise_a_letter_is_still_released() -> None:
    plan = replace(plan_of(), privacy=ps.NoPrivacy())
    assert "which is still released: omit" in unread_statistics(plan).sentences()[1]


def test_a_regression_and_schemas_without_heads_leave_nothing_unread() -> None:
    ridge = replace(plan_of(), schema=ps.RidgeSchema(3, clip_norm=1.0, target_bound=1.0))
    assert unread_statistics(ridge).letters == ()
    assert unread_statistics(ridge).readers["G"] == (*named("ridge"), "ols")
    bare = made.plan(ps.GaussianSchema(4, 9.0, shrinkage=0.1, rounds=1), ps.Cohort(20, 20, 900))
    assert unread_statistics(bare).sentences() == []


def test_a_reader_that_no_list_proposes_is_asked_about_by_its_name() -> None:
    """``plan check --for scorecard`` was unknown, though ``table --reader scorecard`` existed."""
    cells = ps.Cells((ps.Numeric("age", (40, 60)),))
    plan = replace(plan_of(), schema=ps.ClassSchema(3, cells.width, "NABD", 1.0, transform=(cells,)))
    assert "scorecard" not in possible(plan)
    found = unread_statistics(plan, ["scorecard"])
    assert (found.letters, found.heads) == (("D",), ())
    assert READERS["scorecard"].read_of(replace(plan.schema, statistics="NAS")) == "NAS"
    wanted = (
        "scorecard reads a ClassSchema with statistics N, A, S or N, A, B or a GradientSchema, and the plan measures"
    )
    refused(
        PlanError,
        wanted,
        unread_statistics,
        replace(plan, schema=replace(plan.schema, statistics="NAD")),
        ["scorecard"],
    )
    refused(PlanError, "scorecard refuses a release under this plan", unread_statistics, plan_of(), ["scorecard"])


def test_a_table_is_asked_about_as_a_head_is() -> None:
    found = unread_statistics(plan_of(), ["table-one"])
    assert (found.letters, found.heads) == (("B",), ())
    assert "table-one reads not B, which takes 6.5% of the budget" in found.sentences()[1]
    assert unread_statistics(plan_of(), ["table-one", "LDA"]).letters == ()
    with pytest.raises(
        PlanError, match="table-one reads a ClassSchema with statistics N, A, D or a CountSchema, and the plan measures"
    ):
        unread_statistics(plan_of("NAB"), ["table-one"])
    refused(PlanError, "km reads a CountSchema", unread_statistics, plan_of(), ["km"])
    counts = ps.CountSchema((ps.Bins("t", (0, 1, 2)), ps.Categories("e", (0, 1))), (("t", "e"),))
    of_counts = unread_statistics(replace(plan_of(), schema=counts))
    assert of_counts.sentences() == ["who reads what: T every reader"]
    assert of_counts.readers["T"] == ("km", "proportions", "table-one")


def test_shares_suit_the_reader_that_is_named() -> None:
    assert suggested(plan_of(), "table-one") == {"N": 0.05, "A": 0.60, "D": 0.35}
    assert set(suggested(plan_of(), "LDA")) == set("NAB")
    assert suggested(plan_of()) == ps.dp.default_shares(plan_of().schema)
    refused(PlanError, "this plan adds no noise", suggested, replace(plan_of(), privacy=ps.NoPrivacy()), "table-one")


def test_the_shares_of_table_one_trade_means_for_counts_and_spreads() -> None:
    usual, shared = plan_of("NAD"), plan_of("NAD", shares=suggested(plan_of("NAD"), "table-one"))
    worse = {letter: shared.noise.sigma[letter] / usual.noise.sigma[letter] for letter in "NAD"}
    assert worse["N"] < 0.65
    assert worse["D"] < 0.62
    assert 1 < worse["A"] < 1.2


def test_the_shipped_plan_carries_no_letter_that_its_head_does_not_read(privstats: Any, tmp_path: Any) -> None:
    privstats("plan", "init", cwd=tmp_path)
    found = json.loads(privstats("plan", "check", "plan.toml", "--json", cwd=tmp_path).stdout)
    plan = ps.Plan.read(tmp_path / "plan.toml")
    assert (found["digest"], found["epsilon"], found["unread"]) == (plan.digest, 1.0, [])
    assert found["delta"] == plan.budget().delta
    assert "who reads what: N every head; A every head; B every head" in found["facts"]
    (tmp_path / "more.toml").write_text(plan_of().to_toml())
    assert json.loads(privstats("plan", "check", "more.toml", "--json", cwd=tmp_path).stdout)["unread"] == ["D"]
    shown = privstats("plan", "check", "more.toml", "--head", "lda", cwd=tmp_path).stdout
    assert "LDA reads not D" in " ".join(shown.split())
    done = privstats("plan", "check", "more.toml", "--head", "nobody", cwd=tmp_path)
    assert (done.returncode, "--head nobody is unknown" in done.stderr) == (2, True)
    shown = json.loads(privstats("plan", "check", "more.toml", "--for", "Table-One", "--json", cwd=tmp_path).stdout)
    assert (shown["for"], shown["heads"], shown["unread"]) == (["table-one"], [], ["B"])
    done = privstats("plan", "suggest", "--plan", "more.toml", "--for", "table-one", cwd=tmp_path)
    assert 'statistics = "NAD"' in done.stdout
    assert "shares = { N = 0.05, A = 0.6, D = 0.35 }" in done.stdout
    assert privstats("plan", "suggest", "--plan", "more.toml", "--for", "nobody", cwd=tmp_path).returncode == 2
