"""The registrar: codes once, a signed roster, every party its own files, a cap of runs; and what it refuses."""

import json
import os
from collections.abc import Callable
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

import privstats as ps
from privstats.contrib.http import registrar
from privstats.contrib.http.folders import helper_folder
from privstats.contrib.http.invitations import Invitation, study_of
from privstats.contrib.http.page import BUNDLE, client_file, write_page
from privstats.contrib.http.settings import Settings
from privstats.errors import LocalProtocolError, PlanError, PrivstatsError
from privstats.secagg import Identity, Roster
from tests.plan.devices import devices_plan, sample_devices

LEADER, HELPER, TRIER, STRANGER = (Identity.generate(os.urandom) for _ in range(4))
PAGE = "https://survey.example/answer"
SETTINGS = Settings(
    "https://leader.example",
    closes=datetime(2027, 3, 1, tzinfo=UTC),
    until=datetime(2027, 3, 20, tzinfo=UTC),
    origins=("https://survey.example",),
)
PLAN = devices_plan(
    panel=(LEADER.public.hex(), HELPER.public.hex()),
    clients=6,
    devices=sample_devices(registrar_key=TRIER.public.hex(), most_runs=2, stated_epsilon=2.5),
)


@pytest.fixture
def home(tmp_path: Path) -> Path:
    registrar.write_study(tmp_path / "survey", PLAN, SETTINGS, PAGE)
    return tmp_path / "survey"


@pytest.fixture
def run(home: Path) -> registrar.Run:
    return registrar.write_invitations(home, TRIER)


def people_of(home: Path) -> list[Invitation]:
    return [Invitation.read(line) for line in (home / registrar.LINKS).read_text().splitlines()]


def test_every_person_has_a_place_that_its_code_proves(home: Path, run: registrar.Run) -> None:
    people = people_of(home)
    assert [each.index for each in people] == list(range(6))
    assert len({each.code for each in people}) == 6
    for each in people:
        run.roster.check_member(each.index, each.identity)
    lines = (home / registrar.LINKS).read_text().splitlines()
    assert all(line.startswith(f"{PAGE}#1.") for line in lines)


def test_each_party_gets_what_it_needs_and_the_page_the_study(home: Path, run: registrar.Run) -> None:
    parts = {path.name: sorted(each.name for each in path.iterdir()) for path in run.folder.iterdir() if path.is_dir()}
    party = ["http.toml", "plan.toml", "roster.signature", "roster.toml"]
    assert parts == {"leader": party, "helper-1": party, "page": ["study.json"]}
    for name in ("leader", "helper-1"):
        plan, roster = ps.Plan.read(run.folder / name / "plan.toml"), Roster.load(run.folder / name / "roster.toml")
        assert plan == PLAN
        assert roster.digest == run.roster.digest
        registrar.check_devices(plan, roster, run.folder / name)
    assert Settings.read(run.folder / "leader") == SETTINGS
    assert Settings.read(run.folder / "helper-1") == replace(SETTINGS, origins=())
    pinned = json.loads((run.folder / "page" / "study.json").read_text())
    assert pinned == {"leader": "https://leader.example", "run": run.roster.run.hex(), "study": run.study}
    assert run.study == study_of(run.roster.run, bytes.fromhex(PLAN.digest), run.roster.digest)


def test_the_page_of_a_study_brings_the_bundle(run: registrar.Run, tmp_path: Path) -> None:
    written = write_page(run.folder / "page" / "study.json", tmp_path / "site")
    assert client_file(BUNDLE).read_text("utf-8") in written.html


def test_codes_are_in_one_file_and_nowhere_else(home: Path, run: registrar.Run) -> None:
    secrets = [each for person in people_of(home) for each in (person.letters.encode(), person.code, person.code.hex())]
    for path in home.rglob("*"):
        if path.is_file() and path.name != registrar.LINKS:
            held = path.read_bytes()
            assert not any((each.encode() if isinstance(each, str) else each) in held for each in secrets), path
    assert not any(str(each) in repr(run) for each in secrets)


@pytest.mark.skipif(os.name == "nt", reason="permissions are POSIX's")
def test_files_are_their_owners_alone(home: Path, run: registrar.Run) -> None:
    for path in (home, *home.rglob("*")):
        assert path.stat().st_mode & 0o077 == 0, path


def test_codes_from_paper_are_read_with_their_hyphens(home: Path) -> None:
    run = registrar.write_invitations(home, TRIER, paper=True)
    lines = (home / registrar.LINKS).read_text().splitlines()
    assert all(len(line.split(".")[2].split("-")) == 7 for line in lines)
    for person in map(Invitation.read, lines):
        run.roster.check_member(person.index, person.identity)


def test_the_next_run_keeps_the_codes_under_another_name_and_the_cap_holds(home: Path, run: registrar.Run) -> None:
    later = replace(SETTINGS, closes=datetime(2027, 6, 1, tzinfo=UTC), until=datetime(2027, 7, 1, tzinfo=UTC))
    second = registrar.renew(home, TRIER, later)
    assert second.number == 2
    assert second.roster.publics == run.roster.publics
    assert second.roster.run != run.roster.run
    assert second.study != run.study
    assert Settings.read(second.folder / "leader") == later
    registrar.check_devices(PLAN, second.roster, second.folder / "helper-1")
    with pytest.raises(LocalProtocolError, match="of another|signed for this plan"):
        registrar.check_devices(PLAN, second.roster, run.folder / "helper-1")
    with pytest.raises(LocalProtocolError, match="at most most_runs=2, and 2 were written: a further run breaks what"):
        registrar.renew(home, TRIER)


def test_a_large_roster_is_written_in_bytes_and_read_by_every_party(home: Path, monkeypatch) -> None:
    monkeypatch.setattr(registrar, "_LARGE", 5)
    run = registrar.write_invitations(home, TRIER)
    names = {path.name for path in run.folder.rglob("roster.*")}
    assert names == {"roster.bin", "roster.signature"}
    HELPER.save(run.folder / "helper-1" / "identity.pem")
    assert helper_folder(run.folder / "helper-1").roster.digest == run.roster.digest
    assert registrar.renew(home, TRIER).roster.publics == run.roster.publics


def sybils(run: registrar.Run) -> Roster:
    """The leader's own roster around one person, under the same run."""
    mine = tuple(Identity.generate(os.urandom).public for _ in range(5))
    return Roster((run.roster.publics[0], *mine), server=LEADER.public, run=run.roster.run)


def signed_by_leader(run: registrar.Run) -> str:
    roster = sybils(run)
    return LEADER.sign(b"privstats/devices/1/roster\0" + bytes.fromhex(PLAN.digest) + roster.digest).hex()


LIES: dict[str, Callable[[registrar.Run], tuple[ps.Plan, Roster, str | None]]] = {
    "a roster of Sybils": lambda run: (PLAN, sybils(run), None),
    "signed by the leader": lambda run: (PLAN, sybils(run), signed_by_leader(run)),
    "of another plan": lambda run: (replace(PLAN, min_count=0, cohort=ps.Cohort(6, 4, 6)), run.roster, None),
    "under another run": lambda run: (PLAN, replace(run.roster, run=bytes(16)), None),
    "in another order": lambda run: (PLAN, replace(run.roster, publics=run.roster.publics[::-1]), None),
    "no signature": lambda run: (PLAN, run.roster, ""),
    "half a signature": lambda run: (PLAN, run.roster, "ab" * 32),
    "not hex": lambda run: (PLAN, run.roster, "signed, the registrar"),
    "not text": lambda run: (PLAN, run.roster, "\ufffe"),
}


@pytest.mark.parametrize("lie", LIES)
def test_a_party_takes_no_roster_that_its_registrar_did_not_sign(run: registrar.Run, lie: str) -> None:
    plan, roster, signature = LIES[lie](run)
    folder = run.folder / "helper-1"
    if signature is not None:
        (folder / "roster.signature").write_text(signature, "utf-8")
    with pytest.raises(LocalProtocolError, match=r"not the one that the registrar, 'Trier', signed for this plan"):
        registrar.check_devices(plan, roster, folder)


def test_no_key_is_offered_on_a_leaders_roster(run: registrar.Run) -> None:
    """The folders as the commands open them: a helper that was sent the leader's roster makes nothing."""
    home = run.folder / "helper-1"
    HELPER.save(home / "identity.pem")
    assert helper_folder(home).roster.digest == run.roster.digest
    sybils(run).save(home / "roster.toml")
    with pytest.raises(LocalProtocolError, match="not the one that the registrar, 'Trier', signed"):
        helper_folder(home)
    assert not (home / "sessions").exists()


def test_a_party_without_a_signature_is_told_where_it_comes_from(run: registrar.Run) -> None:
    (run.folder / "leader" / "roster.signature").unlink()
    with pytest.raises(LocalProtocolError, match="cannot read .*roster.signature"):
        registrar.check_devices(PLAN, run.roster, run.folder / "leader")


def test_a_registrar_that_signs_what_does_not_fit_is_refused(run: registrar.Run) -> None:
    for roster in (
        replace(run.roster, publics=run.roster.publics[:5]),
        replace(run.roster, publics=(*run.roster.publics[:5], HELPER.public)),
        replace(run.roster, server=STRANGER.public),
    ):
        said = TRIER.sign(b"privstats/devices/1/roster\0" + bytes.fromhex(PLAN.digest) + roster.digest)
        (run.folder / "leader" / "roster.signature").write_text(said.hex())
        with pytest.raises(LocalProtocolError, match="signed a roster that does not fit the plan"):
            registrar.check_devices(PLAN, roster, run.folder / "leader")


def test_a_plan_without_devices_has_no_registrar(tmp_path: Path, run: registrar.Run) -> None:
    registrar.check_devices(replace(PLAN, devices=None), run.roster, tmp_path)


def study(tmp_path: Path, plan: ps.Plan = PLAN, page: str = PAGE, **changes: Any) -> None:
    registrar.write_study(tmp_path / "other", plan, replace(SETTINGS, **changes), page)


REFUSED: dict[str, tuple[Callable[[Path, Path], object], type[PrivstatsError], str]] = {
    "a plan without devices": (lambda tmp, _: study(tmp, replace(PLAN, devices=None)), PlanError, "no table .devices."),
    "a folder that is there": (
        lambda _, home: registrar.write_study(home, PLAN, SETTINGS, PAGE),
        PrivstatsError,
        "survey exists; name another folder",
    ),
    "the leader serves the page": (
        lambda tmp, _: study(tmp, page="https://leader.example:8443/", origins=("https://leader.example:8443",)),
        LocalProtocolError,
        "the page has the leader's host, and the server of the page reads every answer",
    ),
    "the leader serves the page in capitals": (
        lambda tmp, _: study(tmp, page="https://LEADER.example/", origins=("*",)),
        LocalProtocolError,
        "the page has the leader's host",
    ),
    "the leader serves the page under the root's dot": (
        lambda tmp, _: study(tmp, page="https://leader.example./", origins=("*",)),
        LocalProtocolError,
        "the page has the leader's host",
    ),
    "the leader serves the page on this machine": (
        lambda tmp, _: study(tmp, page="http://localhost:81/", address="http://localhost:81", origins=("*",)),
        LocalProtocolError,
        "the page has the leader's host",
    ),
    "a page that may not ask": (
        lambda tmp, _: study(tmp, page="https://elsewhere.example/"),
        LocalProtocolError,
        "origins lacks the page's, https://elsewhere.example",
    ),
    "a page in plain HTTP": (
        lambda tmp, _: study(tmp, page="http://survey.example/"),
        LocalProtocolError,
        "must begin with https",
    ),
    "a stranger invites": (
        lambda _, home: registrar.write_invitations(home, STRANGER),
        LocalProtocolError,
        "not the registrar's of the plan",
    ),
    "codes twice": (
        lambda _, home: [registrar.write_invitations(home, TRIER) for _ in range(2)],
        LocalProtocolError,
        "two mailings give one person two codes, and the promise of one",
    ),
    "the next run before the first": (
        lambda _, home: registrar.renew(home, TRIER),
        LocalProtocolError,
        "no codes were drawn in .*: invite people first",
    ),
    "a stranger renews": (lambda _, home: registrar.renew(home, STRANGER), LocalProtocolError, "not the registrar's"),
    "an interrupted mailing": (
        lambda _, home: [(home / registrar.LINKS).write_text(""), registrar.write_invitations(home, TRIER)],
        LocalProtocolError,
        "interrupted before anything could be handed out: remove links.txt",
    ),
}


@pytest.mark.parametrize("case", REFUSED)
def test_what_would_break_the_promise_is_refused_in_a_sentence(tmp_path: Path, home: Path, case: str) -> None:
    call, kind, told = REFUSED[case]
    with pytest.raises(kind, match=told) as refused:
        call(tmp_path, home)
    assert "\n" not in str(refused.value)


def test_three_origins_of_one_machine_are_a_demo(tmp_path: Path) -> None:
    study(tmp_path, page="http://127.0.0.1:8082/", address="http://127.0.0.1:8081", origins=("http://127.0.0.1:8082",))
    assert (tmp_path / "other" / "plan.toml").exists()
