"""Accident: a file of a party cannot be read or written once, for whatever reason; the party stays in the session."""

import errno
import os
import sqlite3
from itertools import product
from pathlib import Path

import pytest

from privstats.dp.ledger.file import reading, writing
from privstats.engines.network.party import answer, code_of_error
from privstats.engines.network.transport import Reply
from privstats.errors import DataError, LedgerError, LocalProtocolError, PlanError, PrivstatsError
from privstats.files.atomic import atomic_write
from tests import made
from tests.engines.network.fake import FolderNet, study_of
from tests.faults import Fuse

PARTY = 103
NUMBERS = {errno.ENOSPC: "Make room", errno.EDQUOT: "Make room", errno.EROFS: "Let this account write there"}
NUMBERS |= {errno.EACCES: "Let this account write there", errno.EIO: "Check the disk"}
USES = ("os.open", "os.fsync", "pathlib.Path.replace", "pathlib.Path.mkdir")
DAILY = {(errno.ENOSPC, 3), (errno.EACCES, 8), (errno.EROFS, 21), (errno.EDQUOT, 34), (errno.EIO, 55)}
NIGHTLY = {*product((errno.ENOSPC, errno.EACCES), range(1, 90, 4))} - DAILY
CASES = [*sorted(DAILY), *(pytest.param(*case, marks=pytest.mark.nightly) for case in sorted(NIGHTLY))]


@pytest.mark.parametrize(("number", "at"), CASES)
def test_a_file_that_fails_once_costs_no_party_its_session(
    number: int, at: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    net, failed = FolderNet(study_of(tmp_path)), []

    def fails() -> None:
        failed.append(fuse.stack)
        raise OSError(number, os.strerror(number))

    fuse = Fuse(monkeypatch, *USES, end=fails)
    due = [at]

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
    assert all(f"{NUMBERS[number]}: the server asks again" in line for line in said), said


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


def test_a_file_that_cannot_be_written_has_its_cause(tmp_path: Path) -> None:
    with pytest.raises(PrivstatsError, match="cannot write") as caught:
        atomic_write(tmp_path / "none" / "file", b"")
    assert isinstance(caught.value.__cause__, FileNotFoundError)
