"""A plan alone is a course of one round: its folders stay as they were, and what is no message of it is refused."""

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from privstats.course import Single
from privstats.dp import Ledger
from privstats.engines.network.folder import Folder
from privstats.engines.network.host import Host
from privstats.engines.network.party import Party
from privstats.engines.network.statements import Envelope, RoundAnnouncement, SignedAnnouncement
from privstats.engines.network.transport import CODES
from privstats.secagg import Identity
from tests import made
from tests.engines.network.fake import FolderNet, Study, enveloped, open_accounts, study_of
from tests.engines.network.test_party import opening_of

PRIVACY = made.promise("distributed", epsilon=2.0)


def told(study: Study, message: bytes, peer: int = 0) -> tuple[str, bytes, list[str]]:
    said: list[str] = []
    found = Party.open(study.home(peer), said.append).answer("round", message)
    return found.code, found.data, said


def tree(home: Path) -> set[str]:
    return {path.relative_to(home).as_posix() for path in home.rglob("*")}


def test_its_files_lie_in_the_folder_itself_and_it_is_spent_as_a_plan(tmp_path: Path) -> None:
    """A course's spend, or a mark, would be a second spend of a run that an earlier version began."""
    study = study_of(tmp_path, privacy=PRIVACY)
    open_accounts(study, 9.0)
    mode = study.home(0).parent.stat().st_mode
    FolderNet(study).ended()
    session = Folder.open(study.home(0)).round(0).session
    assert tree(study.home(0)) == {
        *("identity.pem", "journal.key", "ledger", "ledger.head", "moments", "plan.toml", "records.npz", "records.py"),
        *(
            "roster.toml",
            "sessions",
            f"sessions/{session}",
            f"sessions/{session}.lock",
            "sessions.counts",
            "status.json",
        ),
        *("sessions.counts/" + path.name for path in (study.home(0) / "sessions.counts").iterdir()),
    }
    assert study.home(0).parent.stat().st_mode == mode
    ((entry,),) = (account.entries for account in Ledger.open(study.home(0) / "ledger").accounts())
    assert (entry.plan, entry.run, entry.nodes, entry.begun) == (study.plan.digest, study.roster.run, 1, ())


def test_a_session_that_an_earlier_version_opened_goes_on(tmp_path: Path) -> None:
    """What travels inside the envelope is what travelled before, and the party's journal is the same file."""
    study = study_of(tmp_path)
    opening = opening_of(study)
    first = Party.open(study.home(0)).first.answer("open", opening)
    assert told(study, enveloped(study, "open", opening)) == ("ok", first.data, [])


@pytest.mark.parametrize("kind", ["hello", "open", "step", "helper", "over", "node"])
def test_a_message_without_an_envelope_is_of_another_version(tmp_path: Path, kind: str) -> None:
    """Also one in an earlier envelope, ``node``, whose announcement names all values together."""
    study, said = study_of(tmp_path), []
    found = Party.open(study.home(0), said.append).answer(kind, opening_of(study))
    assert found.code == "version"
    assert said == ["the server speaks another version of this engine: install the same privstats"]
    assert "runs another version of privstats" in CODES[found.code].sentence
    assert not (study.home(0) / "sessions").exists()


@pytest.mark.parametrize(
    ("change", "code"),
    [
        ({"course": b"c" * 32}, "wrong_plan"),
        ({"roster": b"r" * 32}, "wrong_roster"),
        ({"place": 1, "outcomes": (b"",)}, "damaged"),
        ({"outcomes": (b"",)}, "damaged"),
    ],
)
def test_attack_what_the_server_signed_of_another_session_opens_none(
    tmp_path: Path, change: dict[str, Any], code: str
) -> None:
    """An announcement of a course's round, or of the run before, shown again with the opening of this one."""
    study = study_of(tmp_path)
    host, opening = Host.open(study.host), opening_of(study)
    outgoing = host._announcing(host.folder.round(0))
    fields = {name: getattr(outgoing.announcement, name) for name in RoundAnnouncement.__struct_fields__}
    other = replace(outgoing, announcement=RoundAnnouncement(**{**fields, **change})).signed(whole=True)
    assert told(study, Envelope(change.get("place", 0), "open", opening, other).encode())[0] == code
    assert not (study.home(0) / "sessions").exists()
    assert not (study.home(0) / "nodes").exists()


@pytest.mark.parametrize("kind", ["hello", "open", "helper"])
def test_attack_a_first_message_without_its_announcement_opens_nothing(tmp_path: Path, kind: Any) -> None:
    """Left out, it would be no guard: whoever carries the messages would leave it out."""
    study = study_of(tmp_path)
    code, _, lines = told(study, Envelope(0, kind, opening_of(study)).encode())
    assert (code, lines) == (
        "damaged",
        ["a message that may be the first of its session came without its announcement"],
    )
    assert not (study.home(0) / "sessions").exists()


def test_attack_a_stranger_announces_a_session(tmp_path: Path) -> None:
    study = study_of(tmp_path)
    host, opening = Host.open(study.host), opening_of(study)
    said = host._announcing(host.folder.round(0)).announcement
    forged = SignedAnnouncement.of(said, Identity(b"\x05" * 32), b"", {})
    code, _, lines = told(study, Envelope(0, "open", opening, forged).encode())
    assert (code, lines) == (
        "damaged",
        ["the server on the roster did not sign this announcement of a round with these values"],
    )
    assert not (study.home(0) / "sessions").exists()


def test_an_announcement_says_the_plan_by_its_digest_and_nothing_else(tmp_path: Path) -> None:
    """The digest stands under no label of a course, so neither is taken for the other."""
    study = study_of(tmp_path)
    host = Host.open(study.host)
    outgoing = host._announcing(host.folder.round(0))
    said = outgoing.announcement
    assert (said.course.hex(), said.plan, said.values, said.outcomes) == (study.plan.digest, "", {}, ())
    assert said.course.hex() != Single(study.plan).digest
    assert (outgoing.values, outgoing.fresh, dict(outgoing.releases), dict(outgoing.ended)) == (b"", b"", {}, {})
