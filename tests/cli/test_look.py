"""``privstats look``: a hospital sees its own file beside the plan, on its screen and nowhere else."""

import pytest

import privstats as ps
from tests.hazard.worlds import in_months

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
    done = privstats("look", "ward.csv", "--plan", "plan.toml", "--key", "patient", cwd=folder, code=0)
    said = " ".join(done.stdout.split())
    assert "20 are not listed, such as F: another spelling?" in said
    assert (
        '3.0 rows per patient, 3 at most: the promise is for one record, so request one row each, or unit = "person"'
        in said
    )
    misfit = "1 line does not fit the table (a wrong number of fields, a stray quote, the header once more, or no JSON"
    assert f"{misfit} object) and is excluded, first: line 62 has 2 fields for 4 names" in said
    assert said.startswith("60 records of ward.csv ")
    assert "years" in said
    assert sorted(folder.iterdir()) == before


@pytest.mark.parametrize(
    ("times", "unit", "said"),
    [(None, None, True), (0.5, None, False), (None, 1.0, False)],
    ids=["whole months", "one of half a month", "the plan knows"],
)
def test_whole_months_of_a_course_of_hazards_are_asked_about(privstats, tmp_path, times, unit, said):
    """From the plan of its rounds or from the course; not where a time is none, or the plan adds half a unit."""
    rows = "".join(f"{place % 13},{place % 2},{50 + place % 9}\n" for place in range(60))
    (tmp_path / "ward.csv").write_text(f"months,died,age\n{rows}{times or 1},0,50\n")
    schema = in_months(unit)
    whole = ps.Hazard.full_plan(schema=schema, cohort=ps.Cohort(2, 2, 900), privacy=PRIVACY)
    (tmp_path / "plan.toml").write_text(whole.to_toml())
    ps.course.write(tmp_path / "course.toml", ps.Hazard.within(whole))
    for plan in ("plan.toml", "course.toml"):
        done = privstats("look", "ward.csv", "--plan", plan, cwd=tmp_path, code=0)
        text = " ".join(done.stdout.split())
        assert ("months: all are integers; if they are rounded down" in text) == said
        assert ("15% are at the edge of a bin, and count in the bin after it" in text) == said


def test_a_hospital_of_a_trial_sees_texts_that_the_plan_does_not_declare(privstats, tmp_path):
    """Only a plan of cells had columns to look at; an arm in another spelling was seen after the first session."""
    rows = "".join(
        f"{30 + place % 9},{('Placebo', 'drug')[place % 2]},{'no' if place % 3 else 'yes'}\n" for place in range(60)
    )
    (tmp_path / "ward.csv").write_text(f"age,arm,well\n{rows}")
    told = {
        (
            "placebo",
            "drug",
        ): "arm: 30 are not listed, such as Placebo: another spelling? By case alone differs Placebo for",
        None: "arm: all 60 are not listed, such as ",
    }
    for texts, said in told.items():
        arm = {"arm": texts} if texts else "arm"
        schema = ps.EffectSchema.of({"age": (20, 90)}, treatment=arm, outcome={"well": ("no", "yes")}, probability=0.5)
        whole = ps.Effect.full_plan(schema=schema, cohort=ps.Cohort(2, 2, 900), privacy=PRIVACY)
        (tmp_path / "plan.toml").write_text(whole.to_toml())
        ps.course.write(tmp_path / "course.toml", ps.Effect.within(whole))
        for plan in ("plan.toml", "course.toml"):
            done = privstats("look", "ward.csv", "--plan", plan, cwd=tmp_path, code=0)
            text = " ".join(done.stdout.split())
            assert said in text
            assert "no 67%, yes 33%" in text


@pytest.mark.parametrize(
    ("words", "told"),
    [
        (["ward.csv", "--plan", "bare.toml"], "bare.toml names no columns to compare with"),
        (["ward.csv", "--plan", "plan.toml", "--key", "name"], "no column 'name' of person ids; it has"),
        (["other.csv", "--plan", "plan.toml"], "no such file"),
    ],
)
def test_what_cannot_be_looked_at_is_one_sentence(privstats, folder, words, told):
    (folder / "bare.toml").write_text(plan((ps.transforms.UnitNorm(),), 4))
    done = privstats("look", *words, cwd=folder)
    assert (done.returncode, done.stdout) == (2, "")
    assert told in " ".join(done.stderr.split())


def test_labels_in_another_case_and_ids_of_nobody_are_seen_before_a_session(privstats, folder):
    (folder / "lab.csv").write_text("patient,age,sex,ill\na,51,f,No\n10.5,52,m,YES\n,53,d,no\n2020-01-02,54,f,no\n")
    words = ("look", "lab.csv", "--plan", "plan.toml", "--key", "patient", "--target", "ill")
    said = " ".join(privstats(*words, cwd=folder, code=0).stdout.split())
    assert "ill: 2 are not listed" in said
    assert "3 rows have no patient that names a person: under a promise per person they are excluded" in said


def test_an_id_that_stands_for_many_patients_is_named(privstats, folder):
    """300 rows of 300 unknown patients are one person, who weighs as one."""
    rows = [f"{'unknown' if place % 2 else f'p{place}'},{50 + place % 9},m,no" for place in range(600)]
    (folder / "lab.csv").write_text("\n".join(["patient,age,sex,ill", *rows]) + "\n")
    done = privstats("look", "lab.csv", "--plan", "plan.toml", "--key", "patient", cwd=folder, code=0)
    said = " ".join(done.stdout.split())
    assert "300 rows share one id, 'unknown', and count as ONE person under a promise per person" in said
    assert "empty those fields: rows without an id are excluded" in said


def test_a_plan_that_names_its_columns_has_columns_to_look_at(privstats, folder):
    schema = ps.ClassSchema(2, 2, "NA", clip_norm=100.0, feature_names=("age", "weight"))
    (folder / "named.toml").write_text(ps.Plan(schema=schema, cohort=ps.Cohort(2, 2, 900), privacy=PRIVACY).to_toml())
    (folder / "lab.csv").write_text('age,weight,ill\n61,72,0\n"61,5",80,1\nsixty,,0\n62,75,0\n')
    said = " ".join(privstats("look", "lab.csv", "--plan", "named.toml", cwd=folder, code=0).stdout.split())
    assert "age: 2 are no numbers, such as 61,5, sixty" in said


def test_nothing_of_a_record_is_told_where_the_file_lacks_its_names(privstats, folder):
    (folder / "ward.csv").write_text(ROWS)
    done = privstats("look", "ward.csv", "--plan", "plan.toml", cwd=folder, code=2)
    assert "p0" not in done.stderr
    assert "lacks 'Age'" in done.stderr
