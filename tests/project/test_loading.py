"""What a job loads of the package, in modules and not in seconds: what it does not use stays out of its process."""

import re
from pathlib import Path

import pytest

from privstats.plug_ins import announced
from privstats.review.plan_notes import NOTES
from privstats.workflows.tables.rows import READERS
from tests.cli.test_loading import RUN, loaded

README = Path(__file__).parents[2] / "README.md"
EXTEND = Path(__file__).parents[2] / "privstats" / "extend"
EXAMPLE = re.search(r"^## Use it\n\n```python\n(.*?)^```", README.read_text("utf-8"), re.MULTILINE | re.DOTALL)

ONE_COURSE = """
import privstats as ps
from privstats.course.kinds import course_kind
schema, cohort = ps.ClassSchema(2, 2, "NA", clip_norm=1.0), ps.Cohort(2, 2, 10)
assert course_kind(ps.course.Single(ps.Plan(schema=schema, cohort=cohort, privacy=ps.NoPrivacy()))).name == "single"
"""


def ours(modules: set[str]) -> set[str]:
    return {name for name in modules if name.split(".")[0] in ("privstats", "threat_models")}


def within(names: set[str], room: str) -> set[str]:
    return {name for name in names if f"{name}.".startswith(f"{room}.")}


def test_the_package_loads_no_room() -> None:
    assert ours(loaded("import privstats")) == {"privstats", "privstats.lazy_names"}


def test_the_extension_interface_loads_no_room() -> None:
    modules = {f"privstats.extend.{path.stem}" for path in EXTEND.glob("[a-z]*.py")}
    there = {"privstats", "privstats.extend", "privstats.lazy_names"} | modules
    assert ours(loaded(f"import {', '.join(there)}")) == there


@pytest.mark.ci
def test_the_example_of_the_readme_loads_what_it_uses() -> None:
    """Its plan has one schema, one protocol and no proof; no course follows and one head is fitted."""
    names = ours(loaded(EXAMPLE[1]))
    assert {"privstats.workflows.simulate", "privstats.heads.lda", "privstats.secagg.interactive.server"} <= names
    for unused in (
        "course.planned",
        "course.kinds",
        "secagg.upload",
        "kinds.counts",
        "dp.ledger",
        "heads.ridge",
        "contrib",
        "cli",
    ):
        assert not within(names, f"privstats.{unused}"), unused


@pytest.mark.ci
def test_a_check_of_a_plan_loads_no_machine_no_records_no_course_and_no_head(tmp_path: Path, monkeypatch) -> None:
    monkeypatch.chdir(tmp_path)
    loaded(RUN.format(["privstats", "plan", "init", "--example"]))
    names = ours(loaded(RUN.format(["privstats", "plan", "check", "plan.toml"])))
    unused = ("course", "secagg.interactive.server", "session", "engines", "heads.estimator", "dp.ledger")
    for room in unused:
        assert not within(names, f"privstats.{room}"), room
    rows = [entry.module for door in (NOTES, READERS) for entry in announced(door.group)]  # load what they need on use
    assert within(names, "privstats.contrib") <= {row.rsplit(".", end)[0] for row in rows for end in range(3)}
    assert within(names, "privstats.moments") == {"privstats.moments", "privstats.moments.base"}  # no sum is formed


@pytest.mark.ci
def test_a_course_loads_no_other_course() -> None:
    names = ours(loaded(ONE_COURSE))
    assert "privstats.course.planned" in names
    assert not names & {f"privstats.course.{other}" for other in ("rounds", "centred", "newton", "hazard")}
    assert not within(names, "privstats.contrib")
