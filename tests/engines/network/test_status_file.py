"""The numbers of connections beside a server's folder: kept whole, read or nothing."""

from pathlib import Path

import pytest

from privstats.engines.network.status_file import (
    ConnectionStatus,
    connections_forgotten,
    keep_connections,
    read_connections,
)

STATUS = ConnectionStatus(nodes=3, unsigned=1, closed={"address": 882, "slow": 2})


def test_what_was_kept_is_read_until_it_is_forgotten(tmp_path: Path) -> None:
    assert read_connections(tmp_path) is None
    keep_connections(tmp_path, STATUS)
    assert read_connections(tmp_path) == STATUS
    for _ in range(2):
        with connections_forgotten(tmp_path):
            pass
    assert read_connections(tmp_path) is None


@pytest.mark.parametrize("text", ["", "{", '{"nodes": "many"}', "\udcff"])
def test_a_file_of_something_else_is_as_none(tmp_path: Path, text: str) -> None:
    (tmp_path / ".connections").write_bytes(text.encode(errors="surrogateescape"))
    assert read_connections(tmp_path) is None


def test_a_folder_that_cannot_be_written_ends_nothing(tmp_path: Path) -> None:
    with connections_forgotten(tmp_path / "none"):
        keep_connections(tmp_path / "none", STATUS)
