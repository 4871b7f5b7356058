"""What tests of journals share."""

from pathlib import Path

import pytest

from privstats.engines.journal import server_files
from privstats.secagg.upload import batching
from tests.secagg.conftest import cohort as cohort
from tests.secagg.upload.cohorts import uploads_of


@pytest.fixture
def small_parts(monkeypatch: pytest.MonkeyPatch) -> None:
    """Parts of two reports, and a snapshot after every kilobyte."""
    monkeypatch.setattr(batching, "PART_BYTES", 2 * uploads_of().parameters.upload_bytes)
    monkeypatch.setattr(server_files, "_LEAST_LIMIT", 1000)
    monkeypatch.setattr(server_files, "_SNAPSHOT_SHARE", 0)


@pytest.fixture
def party(tmp_path: Path) -> Path:
    """A party's folder, in which its sessions and the counters beside them lie."""
    (tmp_path / "party" / "sessions").mkdir(parents=True)
    return tmp_path / "party"
