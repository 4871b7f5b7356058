"""The forms that a rehearsal found are kept in ``columns.toml`` for a person to confirm; plan and look use them."""

from __future__ import annotations

import shlex
import tomllib

import pytest

from privstats.cli.parts.declared_columns import read_columns, undeclared
from privstats.moments import RecordFile
from privstats.workflows import rehearsal
from privstats.workflows.forms import form_of
from tests.cli.test_try import ANSWERS, said
from tests.exports.programs import EXPORTS
from tests.exports.test_commands import files_of
from tests.exports.test_exports import opened


@pytest.mark.ci
def test_forms_that_a_rehearsal_keeps_let_look_read_what_names_alone_leave_unread(privstats, tmp_path):
    """A person answers the kinds of an export of Excel; test_to_prediction.py does it for other programs."""
    words = files_of(tmp_path, "excel_german")
    public = opened(tmp_path, "excel_german", EXPORTS["excel_german"]).public
    kinds = {each.name: f'"{each.kind}"' for each in public.columns} | {"ill": '"truth"'}
    kinds["smoker"] = '"truth"\nvalues = ["FALSCH", "WAHR"]'
    unread = {}
    for flag in ("--keep", "--forms"):
        done = privstats("try", *words, flag, "--force", cwd=tmp_path, code=0)
        place = tmp_path / "columns.toml"
        text = place.read_text("utf-8")
        for column, kind in kinds.items():
            text = text.replace(f'name = "{column}"\nkind = "?"', f'name = "{column}"\nkind = {kind}')
        place.write_text(text, "utf-8")
        lines = [line for line in done.stdout.partition("next:")[2].splitlines() if line.startswith("  privstats")]
        plan, look, _ = (shlex.split(line)[1:] for line in lines)
        privstats(*plan, *ANSWERS, "--force", cwd=tmp_path, code=0)
        unread[flag] = "To read them" in said(privstats(*look, cwd=tmp_path, code=0))
    assert unread == {"--keep": True, "--forms": False}
    read = {each.name: form_of(each) for each in read_columns(place)}
    assert read == read | {each.name: form_of(each) for each in public.columns}


@pytest.mark.ci
def test_the_gaps_of_the_outcome_are_kept(privstats, tmp_path):
    words = files_of(tmp_path, "stata_codes")
    privstats("try", *words, "--gaps", "age=40", "--gaps", "ill=9", "--forms", cwd=tmp_path, code=0)
    kept = {
        each["name"]: each.get("gaps") for each in tomllib.loads((tmp_path / "columns.toml").read_text())["columns"]
    }
    assert (kept["ill"], kept["age"]) == ([".", "9"], [40])


def test_a_date_that_fits_two_formats_is_declared_by_a_person(tmp_path):
    rows = [f"0{1 + k % 9}/0{1 + k // 9 % 9}/2019,{k + k / 8 if k % 7 else '-'},{k % 3 == 0}" for k in range(99)]
    (tmp_path / "n.csv").write_text("\n".join(["seen,crp,ill", *rows]))
    files = [RecordFile(tmp_path / "n.csv", "ill")] * 2
    public = rehearsal.opened(files, rehearsal.RehearsalOptions("ill", 3.0, test=0.5)).public
    assert public.orders == {"seen": ("DD/MM/YYYY",)}
    text = undeclared(["seen", "crp", "ill"], {each.name: form_of(each) for each in public.columns}, public.orders)
    assert tomllib.loads(text)["columns"] == [
        {"name": "seen", "kind": "?"},
        {"name": "crp", "kind": "?", "gaps": ["-"]},
        {"name": "ill", "kind": "?"},
    ]
    assert '# written = "MM/DD/YYYY"\n# written = "DD/MM/YYYY"\n' in text
