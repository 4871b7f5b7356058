"""The pages for an ethics board: every kind of plan and course has its words, and they fit two printed pages."""

import math
import re
import subprocess
from dataclasses import replace
from pathlib import Path
from statistics import NormalDist
from typing import Any, get_args

import pytest

import privstats as ps
from privstats.course.kinds import COURSE_KINDS
from privstats.course.promise import longest
from privstats.dp.privacy import MODELS as DP_MODELS
from privstats.dp.privacy import Adjacency, Unit
from privstats.plan.settings import TRUSTED_REGISTRAR
from privstats.printable import at_most
from privstats.secagg.protocols import PROTOCOLS
from privstats.workflows.report import Statement, ethics_page
from privstats.workflows.report import ethics as ethics_words
from tests import made
from tests.contrib.streams.streams import exact_stream
from tests.course.test_kinds import OBSERVED, SAMPLES, Stranger
from tests.made import refused
from tests.plan.devices import devices_plan, sample_devices
from tests.plan.random_plans import PANEL
from tests.plan.test_devices import exact_plan
from tests.planted import plant
from tests.schema.samples import PROMISED
from tests.schema.test_contract import plan_of
from tests.workflows.report.test_browser import CHROMIUM
from tests.workflows.report.test_privacy_report import text_of

from .conftest import PLAN

JARGON = r"\b(mu|sigma|GDP|L2|norm|sensitivity|survivors|colluders|schema|cohort|client|adjacency|add-remove)\b"
TITLES = (
    *("What a record is", "What leaves each party", "What is made of it", "Minimum counts", "Who holds which keys"),
    *("What a patient is promised", "What is not promised", "What is stored, and how long", "Contact and signatures"),
)


def of(plan: ps.Plan, course: ps.course.Course | None = None) -> str:
    return text_of(ethics_page(Statement(plan, course=course)))


def without_names(said: str) -> str:
    """Without digests, and names of public maps."""
    return re.sub(r"[0-9a-f]{64}|maps are applied[^.]*\.", "", said)


def test_every_kind_has_its_words_and_no_kind_has_words_that_is_not_there() -> None:
    assert all(kind.why for kind in COURSE_KINDS.values())
    assert (set(ethics_words.KEYS), set(ethics_words.UNITS)) == (set(PROTOCOLS), set(get_args(Unit)))
    assert set(ethics_words.HIDDEN) == set(get_args(Adjacency))


@pytest.mark.parametrize("schema", PROMISED, ids=lambda schema: f"{schema.task}-{schema.statistics}")
def test_a_plan_of_every_kind_says_what_leaves_a_party_and_what_for(schema: ps.schema.Schema) -> None:
    plan = plan_of(schema)
    said = of(plan)
    assert all(title in said for title in TITLES)
    assert f"A party sends {plan.layout.size:,} numbers, {plan.masking.upload_bytes:,} bytes" in said
    assert ("each with any number of records" in said) == schema.party_is_record
    for row in schema.sent:
        numbers = row.blocks(schema.sizes) * row.entries(schema.sizes)
        assert f"{row.meaning} {numbers:,} {plan.noise.sigma[row.letter]:.3g}" in said
    assert schema.purpose[1:] in said
    assert f"A record is {schema.record}." in said
    assert plan.digest in said
    assert f"privstats {ps.__version__}." in said
    assert not re.search(JARGON, without_names(said))


@pytest.mark.parametrize("name", COURSE_KINDS)
def test_a_course_of_every_kind_says_how_often_parties_are_asked_and_what_all_of_it_promises(name: str) -> None:
    course = SAMPLES[name]
    said = of(course.first, course)
    plans = longest(course) if len(course.priced) == course.most else course.priced * course.most
    sessions = f" in at most {course.most} sessions" if course.most > 1 else ""
    sent = f"{sum(plan.layout.size for plan in plans):,} numbers{sessions}"
    what = "directions from" if course.first.schema.party_is_record else "sums over"
    size = f"{sum(plan.masking.upload_bytes for plan in plans):,} bytes: {what} its records"
    assert f"A party sends {sent}, {size}" in said
    assert said.count("A record is") == 1
    for plan in course.priced:
        assert plan.schema.purpose[1:] in said
        assert plan.schema.record in said
        assert all(row.meaning in said for row in plan.schema.sent)
    assert ethics_words.sessions_of(course) in said
    privacy = course.first.privacy
    exact = isinstance(privacy, ps.NoPrivacy)
    assert ("Nothing bounds" if exact else f"(epsilon {at_most(course.epsilon(privacy.delta))})") in said
    assert course.digest in said
    assert not re.search(JARGON, without_names(said))


@pytest.mark.parametrize("unit", get_args(Unit))
@pytest.mark.parametrize("epsilon", [0.5, 4.0])
def test_the_promise_is_the_one_that_the_audit_of_the_budget_bounds(unit: str, epsilon: float) -> None:
    several: dict[str, Any] = {"person_clip": "average"} if unit == "person" else {}
    several |= {"max_records_per_client": 7} if unit == "client" else {}
    plan = replace(PLAN, privacy=made.promise("central", epsilon=epsilon, unit=unit, **several))
    said = of(plan)
    right = 100 * NormalDist().cdf(plan.noise.mu / 2)  # of two equally likely cases, by the best test there is
    assert right <= float(re.search(r"is right in at most ([\d.]+) of 100 cases", said)[1]) <= right + 0.1
    assert f"more than {at_most(math.exp(epsilon), '.3g')} times as likely" in said
    assert "but for a chance of 1 in 100,000" in said
    assert ethics_words.UNITS[unit] in said
    assert ("10 records of one patient" in said) == (unit == "record")
    assert ("of 100 who are at two" in said) == (unit == "person")


def test_a_pure_promise_has_no_exception() -> None:
    pure = made.plan(replace(PLAN.schema, statistics="NA"), PLAN.cohort, made.promise(delta=0.0))
    assert "(epsilon 1), without exception" in of(pure)
    right = 100 * math.e / (1 + math.e)  # the best test's share of right answers, Kairouz, Oh, Viswanath 2015
    shown = float(re.search(r"is right in at most ([\d.]+) of 100 cases", of(pure))[1])
    assert min(right, 100 * NormalDist().cdf(pure.noise.mu / 2)) <= shown <= right + 0.1


def test_exact_sums_promise_a_patient_nothing() -> None:
    said = of(made.plan(PLAN.schema, PLAN.cohort))
    assert "Nothing bounds what the released sums reveal about single records" in said
    assert "epsilon" not in said
    assert "the total as it is, and everyone who receives it" in said


def test_a_plan_says_who_is_enough_who_may_collude_and_who_sees_the_total() -> None:
    said = of(PLAN)
    assert "A total of fewer than 9 of the 12 parties is never opened." in said
    assert "Of them at most 1 may work against the others" in said
    assert "A class whose noisy count is below 5 is excluded from" in said
    assert "single parties only with more than 1 others on its side" in said
    assert "before it adds the noise" not in said  # every party adds its part
    assert "before it adds the noise" in of(replace(PLAN, privacy=made.promise("central")))
    panel = replace(PLAN, privacy=made.promise("panel"), protocol="split", panel=PANEL)
    assert "The leader, and 2 helpers next to it" in of(panel)
    assert "single parties only if all of them work together" in of(panel)


def test_invited_people_are_told_who_could_read_them() -> None:
    plan = devices_plan(devices=sample_devices(most_runs=2, stated_epsilon=3.0))
    said = of(plan)
    assert f"{plan.devices.registrar} invites {plan.cohort.clients} people, at most 2 times" in said
    assert f"{plan.devices.page} no key: it serves the page on which people answer every answer" in said
    assert "(epsilon 3)" in said
    assert "that a person has answered is no secret" in said
    alone = devices_plan(devices=sample_devices(page=TRUSTED_REGISTRAR, stated_epsilon=3.0))
    assert f"{alone.devices.registrar} no key: it serves the page" in of(alone)


def test_who_withdraws_is_taken_out_only_where_records_can_leave() -> None:
    stream = SAMPLES["stream"]
    assert "Afterwards no record can be removed from" in of(stream.first, stream)
    leaving = replace(stream, deletions=True)
    assert "Afterwards a record is removed from the total at the next session." in of(leaving.first, leaving)


DRAWS = {"central": 1, "distributed": 12 / 8, "local": 12, "panel": 3}
"""By model, how many times the variance that is certain the total of all 12 parties has, at most one of 9 colluding."""


@pytest.mark.parametrize("model", DP_MODELS)
def test_the_typical_noise_is_that_of_the_total_whoever_draws_it(model: str) -> None:
    around = {"protocol": "split", "panel": PANEL} if model == "panel" else {}
    plan = replace(PLAN, privacy=made.promise(model), **around)
    said = of(plan)
    for row in plan.schema.sent:
        typical = plan.noise.sigma[row.letter] * math.sqrt(DRAWS[model])
        assert re.search(rf"{re.escape(row.meaning)} [\d,]+ {re.escape(f'{typical:.3g}')} ", said)


def test_the_typical_noise_of_a_total_is_what_parties_that_take_theirs_back_leave_in_it() -> None:
    plan = replace(PLAN, excess_noise="removed")
    left = plan.noise.sigma_at_levels([PLAN.cohort.clients] * PLAN.cohort.clients)
    said = of(plan)
    assert all(f" {left[row.letter]:.3g} " in said.split(row.meaning)[1][:30] for row in plan.schema.sent)


@pytest.mark.parametrize("model", DP_MODELS)
def test_nobody_reads_that_a_total_without_its_noise_may_be_published(model: str) -> None:
    around = {"protocol": "split", "panel": PANEL} if model == "panel" else {}
    said = of(replace(PLAN, privacy=made.promise(model), **around))
    published = [each for each in re.split(r"(?<=\.) ", said) if "publish" in each]
    assert len(published) == 3  # what is opened, what is kept, and the word
    assert all("released total" in each and "with its noise" in each for each in published)


def test_exact_totals_are_said_to_tell_more_beside_each_other_and_need_no_account() -> None:
    said = of(made.plan(PLAN.schema, PLAN.cohort))
    assert "tells no more later" not in said
    assert "may be stored and published for ever" not in said
    assert "can subtract one from the other" in said
    assert "keeps an account" not in said
    assert "No account with a limit is needed" in said
    private = of(PLAN)
    assert "subtract" not in private
    assert "Each party keeps an account of all released totals" in private


def test_a_stream_that_discloses_who_leaves_says_so() -> None:
    exact, private = exact_stream(4), replace(SAMPLES["stream"], deletions=True)
    assert "That discloses the record: two totals differ" in of(exact.first, exact)
    assert "discloses" not in of(private.first, private)


def test_records_of_a_stream_go_only_where_they_can() -> None:
    stream = SAMPLES["stream"]
    said, leaving = of(stream.first, stream), of(stream.first, replace(stream, deletions=True))
    assert "Records are added." in said
    assert "come and go" not in said
    assert "Records come and go." in leaving


@pytest.mark.parametrize("most_runs", [1, 3])
def test_of_invited_people_the_leader_keeps_the_account_and_the_registrar_counts(most_runs: int) -> None:
    plan = devices_plan(devices=sample_devices(most_runs=most_runs, stated_epsilon=5.0))
    times = "once" if most_runs == 1 else f"{most_runs} times"
    limit = f"{plan.devices.registrar} invites nobody more than {times}"
    said, exact = of(plan), of(exact_plan(devices=replace(exact_plan().devices, most_runs=most_runs)))
    assert limit in said
    assert limit in exact
    assert f"{plan.devices.organisations[0]}, the leader, keeps the account" in said
    assert "keeps the account" not in exact
    assert "Each party keeps an account" not in said + exact


TRIAL = ps.EffectSchema.of({"age": (20, 90)}, treatment="arm", outcome=(0, 1), probability=0.5)
MISSING = ps.EffectSchema.of(
    {"age": (20, 90)}, treatment="arm", outcome=(0, 1), probability=0.5, missing="weights", trim=0.2
)
LAST = "adds up each record's influence on the effect."
LINES = f"how outcomes go with the columns among the treated and among the others; the last {LAST}"
EFFECTS = {
    "observed": (OBSERVED, {}, f"The first sessions find who is treated, the next {LINES}"),
    "missing": (MISSING, {}, f"The first sessions find whose outcome is there, the next {LINES}"),
    "trial": (TRIAL, {}, f"The first session finds {LINES}"),
    "alone": (TRIAL, {"adjust": False}, f"One session {LAST}"),
    "again": (TRIAL, {"adjust": False, "retries": 2}, f"One session {LAST} Others are held if it ends without a sum."),
}


@pytest.mark.parametrize("case", EFFECTS)
def test_an_effect_says_what_its_own_sessions_are_for(case: str) -> None:
    schema, options, sentence = EFFECTS[case]
    course = ps.Effect.start(schema, PLAN.cohort, made.promise(epsilon=3.0), **options)
    said = of(course.first, course)
    assert sentence in said
    assert ("who is treated" in said, "Others are held" in said) == (case == "observed", case == "again")


def test_many_sums_are_counted_and_none_is_silently_missing() -> None:
    schema = ps.EffectSchema.of({"age": (20, 90)}, treatment="arm", outcome=dict.fromkeys("abcdefgh", (0, 1)), trim=0.1)
    course = ps.Effect.start(schema, PLAN.cohort, made.promise(epsilon=3.0))
    said = of(course.first, course)
    more, numbers = re.search(r"and (\d+) further sums, listed in report.html (\d+) ", said).groups()
    once = list({plan.schema: plan for plan in course.priced}.values())
    listed = [
        row.entries(plan.schema.sizes) * row.blocks(plan.schema.sizes) for plan in once for row in plan.schema.sent
    ]
    assert (int(more) + 11, int(numbers)) == (len(listed), sum(listed[11:]))


def test_the_same_plan_makes_the_same_bytes_whatever_else_is_known() -> None:
    page = ethics_page(Statement(PLAN))
    assert page == ethics_page(Statement(ps.Plan.from_toml(PLAN.to_toml()), accounts=(ps.dp.Account("ward"),)))
    assert not re.search(r"""(?:src|href)=["'](?!data:)""", page)


def test_a_kind_without_words_is_refused_by_its_name(monkeypatch: pytest.MonkeyPatch) -> None:
    refused(ps.PlanError, "Stranger is not a known kind of course", ethics_page, Statement(PLAN, course=Stranger(PLAN)))
    for rows, name in (
        (ethics_words.KEYS, "interactive"),
        (ethics_words.UNITS, "record"),
        (ethics_words.HIDDEN, "add-remove"),
    ):
        monkeypatch.delitem(rows, name)
        refused(ps.PlanError, f"no text for .*{name!r}", ethics_page, Statement(PLAN, course=SAMPLES["single"]))
        monkeypatch.undo()
    plant(monkeypatch, COURSE_KINDS, "single", replace(COURSE_KINDS["single"], why=""))
    with pytest.raises(ps.PlanError, match="no text for courses of the kind 'single'"):
        ethics_page(Statement(PLAN, course=SAMPLES["single"]))


def printed(page: str, folder: Path) -> int:
    """How many sheets of A4 a browser prints."""
    (folder / "ethics.html").write_text(page)
    flags = ("--headless", "--no-sandbox", "--disable-gpu", "--no-pdf-header-footer")
    place = (f"--user-data-dir={folder / 'profile'}", f"--print-to-pdf={folder / 'ethics.pdf'}")
    made_of = [CHROMIUM, *flags, *place, (folder / "ethics.html").as_uri()]
    subprocess.run(made_of, capture_output=True, check=True, timeout=120)
    paper = (folder / "ethics.pdf").read_bytes()
    assert set(re.findall(rb"/MediaBox \[0 0 ([\d.]+) ([\d.]+)\]", paper)) <= {(b"594.95996", b"841.91998")}
    return len(re.findall(rb"/Type /Page\b", paper))


EVERY = [*((plan_of(schema), None) for schema in PROMISED), *((each.first, each) for each in SAMPLES.values())]
FULL = [
    (SAMPLES["effect"].first, SAMPLES["effect"]),
    (devices_plan(devices=sample_devices(most_runs=2, stated_epsilon=3.0)), None),
    (replace(PLAN, privacy=made.promise("panel"), protocol="split", panel=PANEL), None),
]
"""Those with most to say."""


@pytest.mark.ci
@pytest.mark.slow
@pytest.mark.skipif(CHROMIUM is None, reason="there is no Chromium on this machine")
def test_the_fullest_pages_are_two_sheets_of_paper(tmp_path: Path) -> None:
    assert [printed(ethics_page(Statement(plan, course=course)), tmp_path) for plan, course in FULL] == [2, 2, 2]


@pytest.mark.nightly
@pytest.mark.skipif(CHROMIUM is None, reason="there is no Chromium on this machine")
def test_pages_of_every_kind_are_two_sheets_of_paper(tmp_path: Path) -> None:
    assert {printed(ethics_page(Statement(plan, course=course)), tmp_path) for plan, course in EVERY} == {2}
