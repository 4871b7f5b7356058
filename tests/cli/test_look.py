"""``privstats look``: a hospital sees its own file beside the plan, on its screen and nowhere else."""

from __future__ import annotations

import pytest

import privstats as ps

ROWS = "".join(
    f"p{place // 3},{50 + place % 9},{'fmF'[place % 3]},{'no' if place % 4 else 'yes'}\n" for place in range(60)
)
CELLS = ps.Cells((ps.Numeric("Age", (52, 56), unit="years"), ps.Categories("sex", ("f", "m", "d"))))
PRIVACY = ps.Privacy(model="central", unit="record", adjacency="add-remove", epsilon=1.0, delta=1e-6)


def plan(transform, features, **privacy):
    schema = ps.ClassSchema(2, features, "NAB", 1.0, class_names=("no", "yes"), transform=transform)
    return ps.Plan(schema=schema, cohort=ps.Cohort(2, 2, 900), privacy=PRIVACY).to_toml()


@pytest.fixture
def folder(tmp_path):
    (tmp_path / "ward.csv").write_text(f"patient,age,sex,ill\n{ROWS}1,2\n")
    (tmp_path / "plan.toml").write_text(plan((CELLS,), CELLS.width))
    return tmp_path


def test_a_hospital_sees_its_own_columns(privstats, folder):
    before = sorted(folder.iterdir())
    done = privstats("look", "ward.csv", "--plan", "plan.toml", "--key", "patient", cwd=folder)
    assert done.returncode == 0, done.stderr
    said = " ".join(done.stdout.split())
    assert "20 are not listed, such as F: another spelling?" in said
    assert (
        '3.0 rows a patient, 3 at most: the promise is for one record, so ask for one row each, or for unit = "person"'
        in said
    )
    assert "1 lines have another number of fields than the header" in said
    assert "years" in said
    assert sorted(folder.iterdir()) == before


@pytest.mark.parametrize(
    ("words", "told"),
    [
        (["ward.csv", "--plan", "bare.toml"], "bare.toml declares no columns, so there is nothing to look at"),
        (["ward.csv", "--plan", "plan.toml", "--key", "name"], "no column 'name' that says whose a row is; it has"),
        (["other.csv", "--plan", "plan.toml"], "no such file"),
    ],
)
def test_what_cannot_be_looked_at_is_one_sentence(privstats, folder, words, told):
    (folder / "bare.toml").write_text(plan((ps.transforms.UnitNorm(),), 4))
    done = privstats("look", *words, cwd=folder)
    assert (done.returncode, done.stdout) == (2, "")
    assert told in " ".join(done.stderr.split())


def test_nothing_of_a_record_is_told_where_the_file_lacks_its_names(privstats, folder):
    (folder / "ward.csv").write_text(ROWS)
    done = privstats("look", "ward.csv", "--plan", "plan.toml", cwd=folder)
    assert done.returncode == 2
    assert "p0" not in done.stderr
    assert "lacks 'Age'" in done.stderr
