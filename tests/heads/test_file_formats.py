"""A head file is read by the row of the format that its header names."""

from pathlib import Path

import numpy as np
import pytest

import privstats as ps
from privstats import heads
from privstats.cli.parts.head_files import HeadFile
from privstats.errors import HeadError
from privstats.heads.file_formats import HEAD_FORMATS, HeadFormat, load_any
from tests.planted import plant_entries

OTHER = HeadFormat("other-head", lambda path, signed_by: (Path(path).name, signed_by))


@pytest.fixture
def stored(tmp_path):
    X = np.eye(3)[np.arange(12) % 3]
    head = ps.heads.LDA().fit(X, np.arange(12) % 3)
    head.save(tmp_path / "lda.head")
    return tmp_path / "lda.head"


def test_a_format_of_another_package_is_read_by_its_row(stored, monkeypatch):
    plant_entries(monkeypatch, HEAD_FORMATS.group, {"other-head": f"{__name__}:OTHER"})
    assert load_any(stored, "other-head", b"key") == ("lda.head", b"key")
    assert type(HeadFile.of(stored).head) is heads.LDA


def test_a_format_that_no_package_reads_is_refused_as_no_head(stored, tmp_path):
    assert type(load_any(stored, "a-format-of-nobody")) is heads.LDA  # the file decides, which save() wrote
    (tmp_path / "text.head").write_text("no head")
    with pytest.raises(HeadError, match="is not a privstats head"):
        load_any(tmp_path / "text.head", "a-format-of-nobody")
