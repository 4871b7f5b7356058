"""What owners declare before the first session: in the digest, in the file, and nowhere to be changed afterwards."""

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import privstats as ps
from privstats.inference.inversion import holm
from tests import made
from tests.made import refused

SCHEMA = ps.EffectSchema.of(
    {"age": (20, 90)},
    treatment="arm",
    outcome={"relapse": (0, 1), "death": (0, 1), "fall": (0, 1)},
    probability=0.5,
    subgroups=(ps.Bins("age", (20, 40, 60, 90)),),
)
ANALYSIS = ps.course.Analysis(
    ("relapse",), ("death",), ("age",), date="2026-11-23", assignment="by telephone, in blocks of four"
)
PLAIN = ps.Effect.start(SCHEMA, ps.Cohort(2, 2, 6_000), made.promise(epsilon=8.0, delta=1e-6))
COURSE = replace(PLAIN, analysis=ANALYSIS)


def world(n: int, seed: int = 0) -> tuple[np.ndarray, np.ndarray]:
    """Relapse falls by a fifth, death a little, falls not at all."""
    rng = np.random.default_rng(seed)
    arm = rng.integers(0, 2, n)
    risks = np.column_stack([0.5 - 0.2 * arm, 0.3 - 0.03 * arm, np.full(n, 0.2)])
    return np.column_stack([rng.uniform(20, 90, n), arm]), (rng.uniform(size=(n, 3)) < risks).astype(float)


@pytest.fixture(scope="module")
def releases() -> list[ps.Release | None]:
    X, y = world(6_000)
    return ps.simulate(COURSE, [(X[::2], y[::2]), (X[1::2], y[1::2])], rng=ps.randomness.seeded(3))


def test_a_course_without_an_analysis_has_a_file_without_one(tmp_path: Path) -> None:
    schema = ps.EffectSchema.of({"age": (20, 90)}, treatment="arm", outcome=(0, 1), probability=0.5)
    course = ps.Effect.start(schema, ps.Cohort(2, 2, 2_000), made.promise(epsilon=3.0))
    ps.course.write(tmp_path / "course.toml", course)
    text = (tmp_path / "course.toml").read_text()
    assert text.startswith("version = 2\n")
    assert "analysis" not in text


def under(course: Any, releases: Any) -> list[Any]:
    """The releases as those of a course of the same plans."""
    return list(releases) if course is None else made.named(course, releases)


def test_an_analysis_is_in_the_digest_and_comes_back_from_the_file(tmp_path: Path) -> None:
    ps.course.write(tmp_path / "course.toml", COURSE)
    assert (tmp_path / "course.toml").read_text().startswith("version = 3\n")
    back = ps.course.read(tmp_path / "course.toml")
    assert back == COURSE
    assert back.digest == COURSE.digest != PLAIN.digest
    for field, value in {
        "primary": ("fall",),
        "secondary": (),
        "subgroups": (),
        "alpha": 0.01,
        "estimand": "ate",
        "date": "",
        "assignment": "",
        "measured_before": "x",
        "missing": "x",
    }.items():
        assert replace(COURSE, analysis=replace(ANALYSIS, **{field: value})).digest != COURSE.digest, field


def test_older_versions_refuse_a_file_with_an_analysis_and_this_one_half_of_it(tmp_path: Path) -> None:
    """They hold to version 2 and to its tables; so does this one where the number and the table do not go together."""
    place = tmp_path / "course.toml"
    ps.course.write(place, COURSE)
    text = place.read_text()
    for changed in (
        text.replace("version = 3", "version = 2"),
        text[: text.index("[analysis]")],
        text.replace("[analysis]", "[analyses]"),
    ):
        place.write_text(changed)
        refused(ps.PlanError, "version = 3 and beside them .analysis.", ps.course.read, place)
    place.write_text(text.replace("[analysis]", "[analysis]\nquick = true"))
    refused(ps.PlanError, r".analysis. holds primary, and beside it secondary, subgroups", ps.course.read, place)
    place.write_text(text.replace('primary = [\n    "relapse",\n]', 'primary = ["pain"]'))
    refused(ps.PlanError, "analysis.primary names 'pain', of which the plan has no sum", ps.course.read, place)


def test_a_course_of_another_kind_takes_no_analysis(tmp_path: Path) -> None:
    plan = ps.Plan(schema=ps.ClassSchema(2, 2, "NA", 1.0), cohort=ps.Cohort(2, 2, 10), privacy=ps.NoPrivacy())
    ps.course.write(tmp_path / "ward.toml", ps.Stream(plan, epochs=4))
    text = (tmp_path / "ward.toml").read_text().replace("version = 2", "version = 3")
    (tmp_path / "ward.toml").write_text(text + '\n[analysis]\nprimary = ["relapse"]\n')
    with pytest.raises(ps.PlanError, match="is of a course of effects, and this one is of kind 'stream'"):
        ps.course.read(tmp_path / "ward.toml")


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ({"primary": ()}, "analysis.primary must name an outcome"),
        ({"primary": "relapse"}, "analysis.primary must be a list of different names"),
        ({"secondary": ("death", "death")}, "analysis.secondary must be a list of different names"),
        ({"secondary": ("relapse",)}, "names 'relapse' as primary and as secondary"),
        ({"alpha": 0.0}, "analysis.alpha must be a number above 0 and up to 0.5"),
        ({"date": 2026}, "analysis.date must be a text of one line"),
        ({"missing": "none\nat all"}, "analysis.missing must be a text of one line"),
        ({"secondary": ("pain",)}, "analysis.secondary names 'pain', of which the plan has no sum: it has relapse, "),
        ({"subgroups": ("sex",)}, "analysis.subgroups names 'sex', of which the plan has no sum: it has age"),
        ({"estimand": "overlap"}, "analysis.estimand is 'overlap' and the plan's is 'ate'"),
    ],
)
def test_an_analysis_of_what_the_plan_does_not_sum_is_refused(changes: dict[str, Any], said: str) -> None:
    refused(ps.PlanError, said, lambda: replace(COURSE, analysis=replace(ANALYSIS, **changes)))


def test_outcomes_without_names_cannot_be_declared() -> None:
    schema = replace(SCHEMA, outcome_names=None)
    with pytest.raises(ps.PlanError, match="it has none by name; name it in the schema"):
        ps.Effect.start(schema, ps.Cohort(2, 2, 900), made.promise(), analysis=ps.course.Analysis(("relapse",)))
    whole: Any = {"primary": ["relapse"]}
    refused(ps.PlanError, "analysis must be an Analysis, got dict", replace, PLAIN, analysis=whole)


@pytest.mark.parametrize(
    "change", [lambda a: None, lambda a: replace(a, primary=("fall",)), lambda a: replace(a, date="")]
)
def test_after_the_first_release_another_analysis_is_refused(change, releases, tmp_path):
    """A ledger was charged for the digest: a course that declares something else is another course."""
    ledger = made.ledger(tmp_path / "ledger.sqlite", epsilon=9.0)
    entry = ps.course.spend(COURSE, ledger, "ward", run=b"r" * 32)
    later = COURSE.next(releases[:1])
    assert ps.course.authorize(COURSE, later, releases[:1], ledger, entry).place == 1
    changed = replace(COURSE, analysis=change(ANALYSIS))
    assert changed.next(under(changed, releases[:1])) == later, "the plans are the same"
    refused(
        ps.PlanError,
        "release 0 is not of this course.*it names session .outcome lines. at place 0",
        changed.next,
        releases[:1],
    )
    refused(ps.LedgerError, "another course", ps.course.authorize, changed, later, releases[:1], ledger, entry)


def test_holm_is_over_what_was_declared_whatever_is_shown(releases: Any) -> None:
    """A declared row that noise hides counts, with a p-value of 1; an exploratory one never does."""
    table = ps.inference.effects(releases, COURSE)
    declared = {(row.name, row.subgroup): row.declared for row in table}
    assert [key for key, word in declared.items() if word == "primary"] == [("relapse", "")]
    ages = [("relapse", f"age: {cell}") for cell in ("under 40", "40 to 60", "60 or more")]
    assert [key for key, word in declared.items() if word == "secondary"] == [*ages, ("death", "")]
    adjusted = dict(zip(declared, table.pvalues_adjusted(), strict=True))
    assert adjusted["relapse", ""] == table["relapse"].pvalue
    assert {key for key, p in adjusted.items() if np.isnan(p)} == {k for k, w in declared.items() if w == "exploratory"}
    family = [table[key].pvalue for key in (*ages, ("death", ""))]
    assert [adjusted[key] for key in (*ages, ("death", ""))] == holm(np.array(family)).tolist()
    hidden = tuple(replace(row, hidden="noise") if row.subgroup == "age: under 40" else row for row in table)
    beside = dict(zip(declared, replace(table, tables=hidden).pvalues_adjusted(), strict=True))
    assert beside["relapse", "age: under 40"] == 1.0
    left = sorted(table[key].pvalue for key in (*ages[1:], ("death", "")))
    assert beside["relapse", "age: 40 to 60"] >= 4 * left[0], "four rows were declared"


def test_holm_is_statsmodels_s() -> None:
    from statsmodels.stats.multitest import multipletests

    rng = np.random.default_rng(0)
    for size in (1, 2, 5, 9):
        p = np.round(rng.uniform(0, 0.2, size), 2)
        assert holm(p) == pytest.approx(multipletests(p, method="holm")[1], abs=1e-15)


def test_without_an_analysis_every_row_is_exploratory(releases: Any) -> None:
    undeclared = "Nothing was declared before the first session: all is exploratory."
    unknown = "No course was given, so this table does not state what was declared before the first session."
    for course, sentence in ((PLAIN, undeclared), (None, unknown)):
        table = ps.inference.effects(under(course, releases), course)
        assert {row.declared for row in table} == {"exploratory"}
        assert sentence in table.summary().foot
        assert sentence in table.summary().methods
        refused(ps.ReleaseError, "no row is known to be declared before the first session", table.pvalues_adjusted)
    with pytest.raises(ps.ReleaseError, match="method must be 'holm', got 'bonferroni'"):
        ps.inference.effects(releases, COURSE).pvalues_adjusted("bonferroni")


def test_the_table_says_what_was_declared_and_marks_the_rest(releases: Any) -> None:
    table = ps.inference.effects(releases, COURSE)
    text = " ".join(str(table).split())
    assert f"declared: primary 1, secondary 4; digest {COURSE.digest[:16]}... (dated 2026-11-23 by its" in text
    assert "exploratory: all else." in text
    assert "On how the treatment was assigned, the analysis states: by telephone, in blocks of four." in text
    assert "On missing outcomes, the analysis states: nothing." in text
    shown = [(row[0], row[-1].split()[-1]) for row in table.summary().rows]
    ages = [f"age: {cell}" for cell in ("under 40", "40 to 60", "60 or more")]
    assert shown == [
        ("relapse", "primary"),
        *((f"relapse {age}", "secondary") for age in ages),
        ("death", "secondary"),
        *((f"death {age}", "exploratory") for age in ages),
        ("fall", "exploratory"),
        *((f"fall {age}", "exploratory") for age in ages),
    ]
    assert {row[-1] for row in table.summary().rows[5:]} == {"exploratory"}, "and no p-value"
    assert {row["declared"] for row in table.to_rows()} == {"primary", "secondary", "exploratory"}


def test_releases_of_another_course_are_refused(releases: Any) -> None:
    other = ps.Effect.start(SCHEMA, ps.Cohort(2, 2, 6_001), made.promise(epsilon=8.0, delta=1e-6), analysis=ANALYSIS)
    refused(ps.ReleaseError, "not of this course", ps.inference.effects, releases, other)
    # Each is written after the releases were read.
    for later in (
        PLAIN,
        replace(COURSE, analysis=ps.course.Analysis(("fall",))),
    ):
        refused(ps.ReleaseError, "it names session .outcome lines.", ps.inference.effects, releases, later)
    single: Any = ps.course.Single(PLAIN.plan)
    refused(ps.ReleaseError, "course must be an Effect course, got Single", ps.inference.effects, releases, single)


def test_the_commands_write_it_say_it_and_read_it(releases: Any, privstats: Any, tmp_path: Path) -> None:
    whole = ps.Effect.full_plan(schema=SCHEMA, cohort=PLAIN.plan.cohort, privacy=made.promise(epsilon=8.0, delta=1e-6))
    (tmp_path / "plan.toml").write_text(whole.to_toml())
    (tmp_path / "declared.toml").write_text('[analysis]\nprimary = ["relapse"]\nsecondary = ["death"]\n')
    privstats("course", "init", "c.toml", "--plan", "plan.toml", "--analysis", "declared.toml", cwd=tmp_path, code=0)
    course = ps.course.read(tmp_path / "c.toml")
    assert course == replace(COURSE, analysis=ps.course.Analysis(("relapse",), ("death",)))
    assert (
        "declared: primary relapse; secondary death; all else is exploratory"
        in privstats("course", "check", "c.toml", cwd=tmp_path).stdout
    )
    for place, release in enumerate(under(course, releases)):
        release.save(tmp_path / f"{place}.release")
    shown = privstats("table", "0.release", "1.release", "--course", "c.toml", cwd=tmp_path, code=0)
    assert f"declared: primary 1, secondary 1; digest {course.digest[:16]}..." in " ".join(shown.stdout.split())
    (tmp_path / "declared.toml").write_text('[analysis]\nprimary = ["pain"]\n')
    refused = privstats(
        "course", "init", "d.toml", "--plan", "plan.toml", "--analysis", "declared.toml", cwd=tmp_path, code=2
    )
    assert "analysis.primary names 'pain'" in refused.stderr
