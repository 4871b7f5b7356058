"""Accident: a party's file cannot be read or written; the party stays in the session and spends once."""

import errno
import os
import sqlite3
from pathlib import Path

import pytest

from privstats.dp import Ledger
from privstats.dp.ledger.file import reading, writing
from privstats.engines.network.party import answer, code_of_error
from privstats.engines.network.transport import Reply
from privstats.errors import DataError, LedgerError, LocalProtocolError, PlanError, PrivstatsError
from privstats.files.atomic import atomic_write
from privstats.files.outside import Outside
from tests import made
from tests.engines.network.fake import FolderNet, study_of
from tests.faults import Fuse

PARTY = 103
ACCOUNT = "Let this account read and write there"
REMEDIES = {errno.ENOSPC: "Make room", errno.EDQUOT: "Make room", errno.EROFS: ACCOUNT, errno.EACCES: ACCOUNT}
REMEDIES |= {errno.EIO: "Check the disk"}
USES = ("os.open", "os.fsync", "pathlib.Path.replace", "pathlib.Path.mkdir")
NUMBERS = tuple(REMEDIES)
# The first answer uses files 115 times, the end of the session is answered with the 343rd to 377th use.
ONCE = [(NUMBERS[at % len(NUMBERS)], at, False) for at in (*range(1, 116), *range(116, 370, 3))]
LASTING = [(NUMBERS[at // 4 % len(NUMBERS)], at, True) for at in range(1, 370, 4)]
# The ledger is created, its head is read, the script is read, the head outside is locked, the head is written.
DAILY = {11, 25, 29, 47, 49}
CASES = [
    pytest.param(*case, marks=() if case[1] in DAILY and not case[2] else pytest.mark.nightly)
    for case in (*ONCE, *LASTING)
]


@pytest.mark.parametrize(("number", "at", "lasting"), CASES)
def test_a_file_that_fails_costs_no_party_its_session(
    number: int,
    at: int,
    lasting: bool,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
) -> None:
    """From its ``at``-th use of a file on, a party's disk fails once, or until the party has answered that message."""
    study = study_of(tmp_path)
    net, failed = FolderNet(study), []

    def fails() -> None:
        failed.append(fuse.stack)
        fuse.left = int(lasting)
        raise OSError(number, os.strerror(number))

    fuse = Fuse(monkeypatch, *USES, end=fails)
    due = [at]  # uses left, of this party alone

    def told(node: int, message: bytes) -> Reply:
        fuse.left = due.pop() if node == PARTY and due else 0
        said = answer(net.homes[node], "round", message, simulated=True)
        if node == PARTY and not failed:
            due.append(fuse.left)
        fuse.left = 0
        return Reply(said.code, said.data)

    net.told = told  # type: ignore[method-assign]
    ended = net.ended()
    assert failed, "no file was used so often, so nothing failed"
    said = [record.getMessage() for record in caplog.records if record.levelname == "WARNING"]
    assert ended.releases[0].survivors == (0, 1, 2, 3, 4), (net.lines, said, failed)
    assert not [line for line in net.lines if "has failed" in line], (net.lines, said, failed)
    asked = [line for line in said if "status.json" not in line]  # which no answer depends on
    assert all(f"{REMEDIES[number]}: the server asks again" in line for line in asked), said
    (account,) = Ledger.open(study.home(PARTY - 100) / "ledger").accounts()
    assert [entry.counts for entry in account.entries] == [True], "one release, one spend"


@pytest.mark.parametrize("number", NUMBERS)
@pytest.mark.parametrize("kind", [OSError, PrivstatsError, LocalProtocolError, PlanError, LedgerError])
def test_every_error_of_the_system_is_asked_again(kind: type[Exception], number: int) -> None:
    error = OSError(number, os.strerror(number))
    if kind is not OSError:
        error, error.__cause__ = kind("a sentence"), error  # type: ignore[assignment]
    assert code_of_error(error) == "disk"


def test_a_missing_file_of_records_is_not_asked_again() -> None:
    error = DataError("load() failed")
    error.__cause__ = FileNotFoundError(errno.ENOENT, "No such file")
    assert code_of_error(error) == "no_data"


def test_a_ledger_that_cannot_be_written_is_no_spent_budget(tmp_path: Path, monkeypatch) -> None:
    """Over a folder that had become read-only, the server read `has no budget left`, and asked no more."""
    path = tmp_path / "ledger"
    made.ledger(path, "beds", epsilon=1.0)
    with monkeypatch.context() as patch:
        connect = sqlite3.connect
        read_only = lambda address, **named: connect(address.replace("mode=rw", "mode=ro"), **named)  # noqa: E731
        patch.setattr(sqlite3, "connect", read_only)
        with pytest.raises(LedgerError, match="check its folder and permissions") as caught, writing(path, 1.0) as log:
            log.connection.execute("CREATE TABLE more (x)")
    assert code_of_error(caught.value) == "disk"
    with reading(path, 1.0):
        pass


def test_a_ledger_whose_copy_is_being_written_is_no_spent_budget(tmp_path: Path) -> None:
    path = tmp_path / "ledger"
    made.ledger(path, "beds", epsilon=1.0)
    with reading(path, 1.0) as log:
        name = log.name
    refused = pytest.raises(LedgerError, match="^another copy")
    with Outside(("ledgers", name)).held(0), refused as caught, writing(path, 0.1):
        pass
    assert code_of_error(caught.value) == "busy"


def test_a_file_that_cannot_be_written_has_its_cause(tmp_path: Path) -> None:
    with pytest.raises(PrivstatsError, match="cannot write") as caught:
        atomic_write(tmp_path / "none" / "file", b"")
    assert isinstance(caught.value.__cause__, FileNotFoundError)
