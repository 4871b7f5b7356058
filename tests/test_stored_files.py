"""Files that earlier versions wrote are read by this one, with their numbers, or refused in one sentence.

``tests/stored/VERSION.zip`` holds one of every kind, written by that version's own code (``stored/write.py``). Its
plans agree on keys by X25519 alone, and those of ``VERSION-hybrid.zip`` by today's hybrid.
"""

from __future__ import annotations

import json
import re
import shutil
import zipfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import privstats as ps
from privstats.dp import Ledger
from privstats.engines.journal import JournaledClient
from privstats.engines.journal.client_file import receipt_and_agreement
from privstats.engines.network.folder import Folder
from privstats.engines.network.host import Host
from privstats.engines.network.round_host import Waiting
from privstats.engines.network.study import LocalTransport
from privstats.engines.network.transport import Deadlines
from privstats.errors import DataError, LedgerError, LocalProtocolError, PrivstatsError, ReleaseError
from privstats.files.envelope import is_signed_by
from privstats.intake.split_notes import require_same_split
from privstats.schema.public_values import Published
from privstats.secagg import Identity, Roster
from tests.stored.write import PARTIES, ROWS, ledger_facts, records

STORED = Path(__file__).with_name("stored")
ARCHIVES = {path.stem: path for path in sorted(STORED.glob("*.zip"))}
"""One archive per version; a commit between two versions stands for what its version's number does not tell."""
OLD_RELEASES = {"0.2.0", "b5dfc058", "1.0.0rc1", "1.0.0rc1-hybrid"}
"""What CHANGELOG says is not read: release files below version 3, and the courses and streams that wrote them."""
HYBRID = {name for name in ARCHIVES if name.endswith("-hybrid")}
"""Their sessions go on. Those that agree on keys by X25519 alone are refused, and their spends stay."""
OF_X25519 = pytest.mark.parametrize("version", sorted(set(ARCHIVES) - HYBRID), indirect=True)
OF_HYBRID = pytest.mark.parametrize("version", sorted(HYBRID), indirect=True)
OTHER = "holds a session of another plan, roster or version of privstats that has not ended: bring that one back"
OTHERS_END = (
    "holds a session of another course, roster or version of privstats that has ended: bring that course or roster "
    "back, go on with that version, or begin in a new folder"
)


@pytest.fixture(params=ARCHIVES)
def version(request: pytest.FixtureRequest) -> str:
    return str(request.param)


@pytest.fixture
def folder(version: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The version's files, as a user has them; the state folder is lost."""
    with zipfile.ZipFile(ARCHIVES[version]) as packed:
        packed.extractall(tmp_path)
    for path in tmp_path.rglob("*"):
        path.chmod(0o700 if path.is_dir() else 0o600)
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.fixture
def facts(folder: Path) -> dict[str, Any]:
    """What the version itself read in its files."""
    return json.loads((folder / "facts.json").read_text("utf-8"))


def finished(root: str) -> Any:
    """A study's next run of its server, on whose messages the three parties of the folder answer."""
    home = Path(root).resolve()
    transport = LocalTransport({place: home / name for place, name in enumerate(PARTIES)})
    return Host.open(home / "host").run(transport, Deadlines())


def spends(root: str) -> dict[str, Any]:
    return {name: ledger_facts(Ledger.open(Path(root) / name / "ledger"))["runs"] for name in PARTIES}


def test_every_version_that_is_read_has_its_archive() -> None:
    assert set(ARCHIVES) == {"0.2.0", "b5dfc058", "1.0.0rc1", "0adfd58d", "1.0.0rc1-hybrid", "0adfd58d-hybrid"}
    assert set(ARCHIVES) > OLD_RELEASES


def test_documents_are_read(facts: dict[str, Any]) -> None:
    assert Identity.load("bonn.pem").public.hex() == facts["public"]
    assert Identity.load("locked.pem", passphrase="a long winter").public.hex() == facts["locked"]
    assert ps.Plan.read("plan.toml").digest == facts["plan"]
    assert Roster.load("roster.toml").fingerprint == facts["fingerprint"]
    assert Published.load("rounds/host/nodes/1/plan.values").sha256 == facts["values"]


def test_a_course_is_read_at_the_price_of_then(version: str, facts: dict[str, Any]) -> None:
    """CHANGELOG says that courses have other digests."""
    course = ps.course.read("rounds.toml")
    assert course.mu == pytest.approx(facts["course mu"], rel=1e-9)
    assert (course.digest == facts["course"]) is (version not in OLD_RELEASES)


def test_every_ledger_opens_with_its_spends_and_goes_on(facts: dict[str, Any]) -> None:
    assert len(facts["accounts"]) > len(PARTIES)
    for path, account in facts["accounts"].items():
        ledger = Ledger.open(path, expected_head=account["head"])
        assert ledger_facts(ledger) == account
        ledger.set_cap("more", unit="record", adjacency="add-remove", epsilon=1.0, delta=1e-6)
        assert ledger_facts(Ledger.open(path, expected_head=account["head"]))["runs"] == account["runs"] | {"more": []}


def test_an_edit_in_any_ledger_is_refused(facts: dict[str, Any]) -> None:
    for path in facts["accounts"]:
        content = Path(path).read_bytes()
        Path(path).write_bytes(content.replace(b'"at":"2026', b'"at":"2027', 1))
        with pytest.raises(LedgerError):
            Ledger.open(path).accounts()


def test_heads_have_the_scores_of_then(facts: dict[str, Any]) -> None:
    for name, scores in facts["scores"].items():
        np.testing.assert_allclose(ps.heads.load(f"{name}.head").decision_function(ROWS), scores, rtol=1e-12)


def test_a_release_has_the_sums_of_then_or_is_refused_in_one_sentence(version: str, facts: dict[str, Any]) -> None:
    path, said = "study/host/release.safetensors", facts["release"]
    if version in OLD_RELEASES:
        with pytest.raises(ReleaseError, match=rf"\(version {facts['version']} wrote it\), which is no longer read"):
            ps.Release.load(path)
        return
    release = ps.Release.load(path, signed_by=Identity.load("server.pem").public, plan=facts["plan"])
    found = {"digest": release.digest, "sums": release.vector.tolist(), "survivors": list(release.survivors)}
    assert found == said


def test_a_session_that_has_ended_does_not_run_again_and_its_receipts_are_read(
    version: str, facts: dict[str, Any]
) -> None:
    before = spends("study")
    with pytest.raises(PrivstatsError, match="this session ended on" if version in HYBRID else "move it away first"):
        finished("study")
    assert spends("study") == before
    for name in PARTIES:
        party = Folder.open(Path("study", name))
        (sent,) = (path for path in Path("study", name, "sessions").iterdir() if not path.suffix)
        receipt, agreement = receipt_and_agreement(sent, party.key)
        assert receipt
        assert agreement


@OF_X25519
@pytest.mark.parametrize("root", ["half", "halfrounds"])
def test_half_a_session_or_course_of_x25519_alone_is_refused_by_name(root: str, facts: dict[str, Any]) -> None:
    """The server was killed between two messages of a step. Nothing is lost: the version that began it goes on."""
    before, files = spends(root), {path: path.read_bytes() for path in Path(root).rglob("journal/*")}
    assert {len(runs["hips"]) for runs in before.values()} == {1}
    with pytest.raises(PrivstatsError, match=OTHER):
        finished(root)
    assert spends(root) == before
    assert {path: path.read_bytes() for path in files} == files


@OF_X25519
def test_a_party_of_x25519_alone_is_refused_by_name(facts: dict[str, Any]) -> None:
    for place, name in enumerate(PARTIES):
        party = Folder.open(Path("half", name))
        (session,) = (path for path in Path("half", name, "sessions").iterdir() if not path.suffix)
        stored, named = session.read_bytes(), {"identity": party.identity, "roster": party.roster}
        for restored in (False, True):
            with pytest.raises(LocalProtocolError, match="by a version of privstats that agrees on keys otherwise"):
                JournaledClient.resume(
                    session,
                    party.key,
                    parameters=party.course.first.masking,
                    index=place,
                    on_upload=lambda _: pytest.fail("an upload"),
                    restored=restored,
                    **named,
                )
        assert session.read_bytes() == stored


@OF_HYBRID
def test_half_a_session_is_finished_and_each_party_pays_once(facts: dict[str, Any]) -> None:
    finished("half")
    release = ps.Release.load("half/host/release.safetensors")
    assert release.survivors == (0, 1, 2)
    assert {name: len(runs["hips"]) for name, runs in spends("half").items()} == dict.fromkeys(PARTIES, 1)


@OF_HYBRID
def test_half_a_course_is_finished_or_spends_nothing_more(version: str, facts: dict[str, Any]) -> None:
    for place, name in enumerate(PARTIES):
        np.savez(f"halfrounds/{name}/records.npz", **records(place))
    before = spends("halfrounds")
    assert {len(runs["hips"]) for runs in before.values()} == {1}
    ended = finished("halfrounds")
    assert isinstance(ended, Waiting) is (version in OLD_RELEASES)
    assert spends("halfrounds") == before
    assert isinstance(ended, Waiting) or len(ended.releases) == 3


def test_a_course_that_has_ended_does_not_run_again(version: str, facts: dict[str, Any]) -> None:
    before = spends("rounds")
    refusal = "no longer read" if version in OLD_RELEASES else "the course ended after 3 rounds"
    with pytest.raises(PrivstatsError, match=refusal if version in HYBRID else OTHERS_END):
        finished("rounds")
    assert spends("rounds") == before


def test_a_stream_goes_on_or_is_refused_by_name(
    version: str, facts: dict[str, Any], privstats: Callable[..., Any]
) -> None:
    before = {name: facts["accounts"][f"stream/{name}/ledger"]["runs"] for name in ("0", "1", "2")}
    Path("changes").mkdir()
    for party in range(3):
        np.savez(f"changes/{party}.npz", ids=np.array([f"{party}-new-{k}" for k in range(90)]), **records(party))
    done = privstats("stream", "epoch", "stream", "changes", cwd=Path.cwd())
    refusal = OTHERS_END if version not in HYBRID else r"wrote it\), which is no longer read"
    if version in HYBRID - OLD_RELEASES:
        assert done.returncode == 0, done.stderr
    else:
        assert done.returncode == 2
        assert re.fullmatch(rf"error: .*{refusal}.*\n", done.stderr)
    after = {name: ledger_facts(Ledger.open(f"stream/{name}/ledger"))["runs"] for name in before}
    assert after == before  # the stream was spent as a whole


def test_signatures_and_notes_of_splits_are_read(version: str, folder: Path) -> None:
    """0.2.0 had neither."""
    assert (folder / "north.csv.splits.json").exists() is (version != "0.2.0")
    if version == "0.2.0":
        return
    assert is_signed_by("report.txt", Identity.load("server.pem").public, DataError)
    same = ps.moments.RecordFile("north.csv", "ill", split=0.25, seed=7)
    with pytest.raises(DataError, match="used a split of rule 1, and this version knows rule 2 alone"):
        require_same_split(same, "d1ce", None)
    assert not require_same_split(same, "another", None)


@OF_HYBRID
def test_a_journal_of_a_version_is_bound_to_its_key(folder: Path) -> None:
    """A journal under another key is refused, so a changed label that seals it would be noticed here."""
    key = Path("half/host/journal.key")
    shutil.copyfile("half/bonn/journal.key", key)
    with pytest.raises(PrivstatsError, match="another key|damaged"):
        finished("half")
