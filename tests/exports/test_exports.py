"""What a rehearsal reads from each dirty export: every patient, every value, and no untrue sentence."""

from __future__ import annotations

import shlex
import shutil
from pathlib import Path

import numpy as np
import pytest

from privstats.errors import DataError
from privstats.moments import RecordFile
from privstats.workflows import rehearsal
from privstats.workflows.forms import toml_of
from tests.exports.programs import EXPORTS, PATIENTS, Export, options_typed


def opened(folder: Path, name: str, export: Export) -> rehearsal.Opened:
    """Two hospitals with this export."""
    path = folder / f"{name}.csv"
    path.write_bytes(export.data)
    shutil.copy(path, folder / "south.csv")
    files = [rehearsal.written_as(RecordFile(each, export.target), {}) for each in (path, folder / "south.csv")]
    return rehearsal.opened(files, rehearsal.RehearsalOptions(export.target, 3.0, test=0.5))


@pytest.mark.parametrize("name", EXPORTS)
def test_what_a_program_exports_is_read_as_it_was_meant(tmp_path, name):
    export = EXPORTS[name]
    if export.refused:
        with pytest.raises(DataError) as refused:
            opened(tmp_path, name, export)
        assert export.refused in str(refused.value)
        return
    what = opened(tmp_path, name, export)
    forms = {each.name: f"{each.kind} {toml_of(each)}".strip() for each in what.public.columns}
    assert forms == export.forms
    assert set(what.public.left_out) == set(export.left_out)
    assert all(words in what.public.left_out[column] for column, words in export.left_out.items())
    assert options_typed(what.files[0]) == shlex.split(export.options)
    party = what.parties[0]
    lost = list(export.unlabelled)
    assert (len(party.y), party.unlabelled, party.broken) == (PATIENTS - len(lost), len(lost), export.lost)
    for place, column in enumerate(what.public.columns):
        if column.name in export.values:
            expected = np.delete(np.array(export.values[column.name], float), lost)
            np.testing.assert_allclose(party.codes[:, place], expected, rtol=1e-11)


@pytest.mark.nightly
@pytest.mark.parametrize("name", [name for name, export in EXPORTS.items() if not export.refused])
def test_every_export_leads_to_a_page(tmp_path, name):
    found = rehearsal.with_progress(opened(tmp_path, name, EXPORTS[name]))
    rehearsal.write_page(found, tmp_path / "try.html")
    assert rehearsal.STAMP in (tmp_path / "try.html").read_text("utf-8")
