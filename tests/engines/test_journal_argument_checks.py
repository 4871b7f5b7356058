"""Whatever stands in the place of a machine, a key, a roster or a plan: one sentence, and nothing on the disk."""

from pathlib import Path

import pytest

from privstats.engines.journal import JournaledClient, JournaledHelper, JournaledServer
from privstats.engines.journal.leader import JournaledLeader
from privstats.errors import LocalProtocolError
from tests.secagg.interactive.cohorts import Cohort, cohort_of

KEY = b"k" * 32
IDENTITY = "identity must be an Identity, got {}: read its file with Identity.load"
ROSTER = "roster must be a Roster, got {}: read its file with Roster.load"
THREADS = "threads must be an integer of at least 1, got {}"
PARAMETERS = "parameters must be a plan's masking parameters, got {}: pass plan.masking"


@pytest.fixture(scope="module")
def cohort() -> Cohort:
    return cohort_of()


def place(cohort: Cohort, **wrong) -> dict:
    right = {"index": 0, "identity": cohort.identities[0], "roster": cohort.roster}
    return {"parameters": cohort.parameters} | right | wrong


def held(cohort: Cohort, **wrong) -> dict:
    return {"parameters": cohort.parameters, "identity": cohort.aggregator, "roster": cohort.roster} | wrong


@pytest.mark.parametrize(
    ("call", "sentence"),
    [
        (lambda c, at: JournaledServer.create(at, KEY, "plan"), "keeps a server, got str: give session.server"),
        (lambda c, at: JournaledServer.create(at, KEY, c.clients[1]), "keeps a server, got Client"),
        (lambda c, at: JournaledClient.create(at, KEY, "plan"), "keeps a client, got str: give session.client"),
        (lambda c, at: JournaledClient.create(at, KEY, c.server), "keeps a client, got Server"),
        (lambda c, at: JournaledClient.create(at, KEY, c.clients[1], on_upload="x"), "on_upload must be a function"),
        (
            lambda c, at: JournaledClient.resume(at, KEY, **place(c), on_upload=3),
            "on_upload must be a function, got int",
        ),
        (
            lambda c, at: JournaledClient.resume_or_create(at, KEY, lambda: c.clients[1], **place(c), on_upload="x"),
            "on_upload must be a function, got str",
        ),
        (lambda c, at: JournaledClient.resume_or_create(at, KEY, c.clients[0], **place(c)), "make must be a function"),
        (lambda c, at: JournaledServer.resume_or_create(at, KEY, c.server, **held(c)), "make must be a function"),
        (lambda c, at: JournaledClient.resume_or_create(at, KEY, lambda: None, **place(c)), "keeps a client, got None"),
        (lambda c, at: JournaledServer.resume_or_create(at, KEY, lambda: 3, **held(c)), "keeps a server, got int"),
        (lambda c, at: JournaledServer.resume(at, KEY, **held(c, parameters=3)), PARAMETERS.format("int")),
        (lambda c, at: JournaledClient.resume(at, KEY, **place(c, parameters="plan")), PARAMETERS.format("str")),
        (lambda c, at: JournaledServer.resume(at, KEY, **held(c, threads=0)), THREADS.format("0")),
        (lambda c, at: JournaledClient.resume(at, KEY, **place(c, threads="2")), THREADS.format("'2'")),
        (lambda c, at: JournaledHelper.offer(at, KEY, **held(c, parameters="plan"), place=1), PARAMETERS.format("str")),
        (lambda c, at: JournaledHelper.offer(at, KEY, **held(c), place=1), "a panel only under a plan"),
        (lambda c, at: JournaledHelper.resume(at, KEY, **held(c)), "a panel only under a plan"),
        (lambda c, at: JournaledHelper.resume(at, KEY, **held(c, identity="x")), IDENTITY.format("str")),
        (lambda c, at: JournaledLeader.offer(at, KEY, **held(c)), "a panel only under a plan"),
        (lambda c, at: JournaledLeader.resume(at, KEY, **held(c, identity=3)), IDENTITY.format("int")),
    ],
)  # fmt: skip
def test_an_argument_of_another_kind_is_one_sentence_and_leaves_no_journal(cohort, tmp_path, call, sentence) -> None:
    with pytest.raises(LocalProtocolError, match=sentence):
        call(cohort, tmp_path / "journal")
    assert not (tmp_path / "journal" / "snapshot").exists()
    assert not (tmp_path / "journal").is_file()


@pytest.mark.parametrize(
    ("wrong", "sentence"),
    [
        ({"identity": b"k" * 32}, IDENTITY.format("bytes")),
        ({"identity": "identity.pem"}, IDENTITY.format("str")),
        ({"roster": "roster.toml"}, ROSTER.format("str")),
        ({"roster": [b"k" * 32]}, ROSTER.format("list")),
        ({"index": "0"}, "index must be an integer, the roster index, got str"),
        ({"index": True}, "index must be an integer, the roster index, got bool"),
        ({"index": -1}, "the identity is not the one at index -1"),
        ({"index": 99}, "the identity is not the one at index 99"),
    ],
)
def test_a_place_of_another_kind_is_one_sentence(tmp_path: Path, wrong, sentence) -> None:
    cohort = cohort_of()
    JournaledClient.create(tmp_path / "client", KEY, cohort.clients[0]).close()
    with pytest.raises(LocalProtocolError, match=sentence):
        JournaledClient.resume(tmp_path / "client", KEY, **place(cohort, **wrong))
    if "index" not in wrong:
        JournaledServer.create(tmp_path / "server", KEY, cohort.server).close()
        with pytest.raises(LocalProtocolError, match=sentence):
            JournaledServer.resume(tmp_path / "server", KEY, **held(cohort, **wrong))
