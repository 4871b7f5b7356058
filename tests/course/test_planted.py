"""A further session of a course is in every price, page, audit and printed epsilon by its phase alone."""

from __future__ import annotations

import json
import math
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path

import pytest

import privstats as ps
from privstats.course.base import mu_of
from privstats.course.kinds import COURSE_KINDS, labels_of
from privstats.course.phases import Phase, Phases
from privstats.course.promise import epsilon_of, every_plan, part_of, total_of
from privstats.dp import Ledger
from privstats.plan import Plan
from privstats.printable import at_most
from privstats.randomness import seeded
from privstats.review.certificate_checker import check_course
from privstats.review.course_certificate import course_certificate_text
from privstats.workflows.report.ethics import ethics_page
from privstats.workflows.report.privacy_report import Statement, page_of
from tests import made
from tests.course.test_positions import SCHEMA, TERMS, shards
from tests.planted import plant
from tests.workflows.report.test_privacy_report import text_of
from threat_models.audits.course import joined
from threat_models.evaluate import sessions_of


@dataclass(frozen=True)
class Planted(ps.Newton):
    """The rounds of a regression, and behind them a session that nothing else knows of: the mean of the rows."""

    label = "planted"

    @cached_property
    def mean(self) -> Plan:
        """The planted session's plan, dearer than a round, which may come in its place."""
        schema = ps.kinds.MeanSchema(3, 2.0, transform=SCHEMA.transform)
        return replace(self.first, schema=schema, privacy=part_of(self.first, 1.5, None), published=None)

    @cached_property
    def phases(self) -> Phases:
        """The rounds, then the planted session."""
        rounds = super().phases
        return Phases((*rounds.phases, Phase("planted mean", self.mean, tries=1)), rounds.retries)


ROUNDS = replace(ps.Newton.start(SCHEMA, **TERMS, rounds=3), promise=None)
COURSE = Planted(ROUNDS.first, ROUNDS.rounds, ROUNDS.retries)


@pytest.fixture(autouse=True)
def planted(monkeypatch: pytest.MonkeyPatch) -> None:
    plant(monkeypatch, COURSE_KINDS, "planted", replace(COURSE_KINDS["newton"], name="planted", place=Planted, task=""))


def test_its_price_and_its_bytes_are_in_the_total() -> None:
    assert COURSE.priced == (*ROUNDS.priced, COURSE.mean)
    assert COURSE.mu == pytest.approx(math.hypot(ROUNDS.mu, mu_of(COURSE.mean)), rel=1e-12)
    more, less, alone = total_of(COURSE), total_of(ROUNDS), total_of(COURSE.mean)
    assert more.sessions == less.sessions + 1
    # A round may come in its place, if one was lost, and sends more than the mean does.
    assert more.upload_bytes == less.upload_bytes + total_of(COURSE.first).upload_bytes
    assert alone.upload_bytes < total_of(COURSE.first).upload_bytes
    assert COURSE.mean in every_plan(COURSE)
    assert "planted mean" in labels_of(COURSE)[-1]


def test_a_ledger_is_charged_for_it(tmp_path: Path) -> None:
    spent = []
    for course in (ROUNDS, COURSE):
        ledger = Ledger.create(tmp_path / f"{course.label}.db")
        ledger.set_cap("ward", unit="record", adjacency="add-remove", epsilon=90.0, delta=1e-5)
        ps.course.spend(course, ledger, "ward", b"a run of sixteen bytes")
        (account,) = ledger.accounts()
        spent.append(account.mu)
    assert spent[1] == pytest.approx(math.hypot(spent[0], mu_of(COURSE.mean)), rel=1e-9)


def test_every_page_names_it() -> None:
    statement = Statement(COURSE.first, course=COURSE)
    (statistic,) = COURSE.mean.schema.sent
    for page in (page_of(statement), ethics_page(statement)):
        text = text_of(page)
        assert "planted mean" in text
        assert statistic.meaning in text
        assert f"{total_of(COURSE).upload_bytes:,} bytes" in text
        assert at_most(total_of(COURSE).epsilon) in text
    assert "planted mean" in COURSE._repr_html_() or f"{total_of(COURSE).upload_bytes:,}" in COURSE._repr_html_()


def test_its_certificate_composes_it(tmp_path: Path) -> None:
    ps.course.write(tmp_path / "study.toml", COURSE)
    text = (tmp_path / "study.toml").read_text()
    assert ps.course.read(tmp_path / "study.toml") == COURSE
    certificate = course_certificate_text(text, COURSE.digest, COURSE.priced)
    assert "4 sessions together" in check_course(text, certificate)
    assert json.loads(certificate)["sessions"][-1]["plan"] == COURSE.mean.to_toml()


def test_every_audit_plays_it() -> None:
    found, _ = joined(COURSE, seeded(1), asks=1)
    assert sorted({each.place for each in found}) == list(range(COURSE.most))
    assert [each.target.plan for each in found][-1] == COURSE.mean
    assert COURSE.mean in sessions_of(COURSE, 1).values()


def test_a_printed_epsilon_counts_it_also_where_it_had_no_sum() -> None:
    releases = ps.simulate(COURSE, shards(), rng=seeded(1))
    *rounds, mean = releases
    assert mean.plan == COURSE.mean
    assert mean.position == COURSE.position([True] * 3)
    delta = made.promise(epsilon=1.0).delta
    table = ps.inference.logit([*rounds, None])
    assert f"epsilon {at_most(epsilon_of(COURSE.mu, delta))}" in table.summary().promise
    before = ps.inference.logit(rounds)
    assert (
        f"epsilon {at_most(epsilon_of(math.hypot(*map(mu_of, [ROUNDS.first] * 3)), delta))}" in before.summary().promise
    )
