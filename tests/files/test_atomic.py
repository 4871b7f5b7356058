"""Files appear whole or not at all."""

import os

import pytest

from privstats.errors import PrivstatsError
from privstats.files.atomic import atomic_write
from tests.faults import full_disk


def test_a_file_is_replaced_as_a_whole(tmp_path):
    target = tmp_path / "plan.toml"
    atomic_write(target, b"old")
    atomic_write(target, b"new")
    assert target.read_bytes() == b"new"
    assert os.listdir(tmp_path) == ["plan.toml"]


def test_a_missing_folder_is_one_sentence(tmp_path):
    with pytest.raises(PrivstatsError, match="cannot write .*nothing was written"):
        atomic_write(tmp_path / "missing" / "plan.toml", b"")


def test_a_failure_while_writing_leaves_the_old_file_and_no_litter(tmp_path):
    target = tmp_path / "plan.toml"
    atomic_write(target, b"old")
    with full_disk(), pytest.raises(PrivstatsError, match="No space left"):
        atomic_write(target, b"new")
    assert target.read_bytes() == b"old"
    assert os.listdir(tmp_path) == ["plan.toml"]


@pytest.mark.parametrize(
    ("shared", "umask", "mode"), [(False, 0o022, 0o600), (True, 0o022, 0o644), (True, 0o027, 0o640)]
)
def test_only_what_is_shared_can_be_read_by_others_and_no_further_than_the_umask(tmp_path, shared, umask, mode):
    before = os.umask(umask)
    try:
        atomic_write(tmp_path / "file", b"", shared=shared)
    finally:
        os.umask(before)
    assert (tmp_path / "file").stat().st_mode & 0o777 == mode


@pytest.mark.parametrize("path", ["", ".", "/", "a\0b"])
def test_a_path_that_names_no_file_is_one_sentence(path):
    with pytest.raises(PrivstatsError, match="must name a file"):
        atomic_write(path, b"")
