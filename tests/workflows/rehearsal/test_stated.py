"""Numbers that look like gap codes are a question in a rehearsal, and a person may state them for one column."""

import shlex

import numpy as np
import pytest

import privstats as ps
from privstats.moments import RecordFile
from privstats.workflows import rehearsal
from privstats.workflows.forms import form_of
from privstats.workflows.rehearsal.sources import HeldTable
from privstats.workflows.rehearsal.stated import StatedGaps

N = 400
RNG = np.random.default_rng(5)
DOSE = RNG.normal(60, 12, N).round(1)
ILL = np.where(DOSE + RNG.normal(0, 9, N) > 60, "2", "1").astype(object)
ILL[::40] = "9"
DOSE[::20] = -9.0
STAGE = RNG.choice(["1", "2", "3", "8"], N)
CODE = RNG.choice(["042", "42", "099"], N)


@pytest.fixture(scope="module")
def files(tmp_path_factory):
    folder = tmp_path_factory.mktemp("codes")
    rows = zip(DOSE, STAGE, CODE, ILL, strict=True)
    lines = [f"{dose:g},{stage},{code},{ill}" for dose, stage, code, ill in rows]
    for name in ("north", "south"):
        (folder / f"{name}.csv").write_text("\n".join(["dose,stage,code,ill", *lines]) + "\n")
    return [RecordFile(folder / f"{name}.csv", "ill") for name in ("north", "south")]


def opened(files, *gaps):
    return rehearsal.opened(files, rehearsal.RehearsalOptions("ill", 3.0, test=0.5, gaps=gaps))


def questions(what):
    return [remark for remark in rehearsal.oddities(what) if remark.startswith("north.csv: ")]


def test_a_class_and_values_that_look_like_gap_codes_are_a_question(files):
    """Code 9 of an outcome was a class without a word."""
    what = opened(files)
    assert what.public.classes == ("1", "2", "9")
    stage = int((STAGE == "8").sum())
    assert questions(what) == [
        f"north.csv: dose: -9 is in 20 of {N} records: a gap code? Then pass --gaps dose=-9",
        f"north.csv: stage: 8 is in {stage} of {N} records: a gap code? Then pass --gaps stage=8",
        f"north.csv: ill: among the classes 9 is in 10 of {N} records: a gap code? Then pass --gaps ill=9",
    ]


def test_the_options_that_the_questions_name_read_the_codes_as_gaps(files):
    options = [shlex.split(remark.rpartition("--gaps ")[2])[0] for remark in questions(opened(files))]
    what = opened(files, *options)
    assert questions(what) == []
    assert what.public.classes == ("1", "2")
    assert what.public.gaps["ill"] == ("9",)
    assert [party.unlabelled for party in what.parties] == [10, 10]
    dose, stage, code = what.public.columns
    assert form_of(dose) == {"gaps": [-9]}
    assert (stage.values, stage.gaps) == ((1, 2, 3), (8,))
    assert code.values == ("042", "099", "42")
    labelled = ILL != "9"
    np.testing.assert_array_equal(what.parties[0].codes[:, 0], np.where(DOSE == -9, np.nan, DOSE)[labelled])
    np.testing.assert_array_equal(np.isnan(what.parties[0].codes[:, 1]), (STAGE == "8")[labelled])


def test_in_a_column_of_codes_a_stated_code_is_a_text(files):
    code = opened(files, "code=042").public.columns[2]
    assert (code.values, code.gaps) == (("099", "42"), ("042",))
    code = opened(files, "code=42").public.columns[2]
    assert (code.values, code.gaps) == (("042", "099"), ("42",))


def test_a_table_in_memory_is_read_likewise(files):
    table = {"dose": DOSE, "stage": STAGE.astype(int), "ill": ILL.astype(int)}
    held = [HeldTable(name, table) for name in ("north", "south")]
    what = opened(held, "dose=-9", "stage=8", "ill=9")
    assert what.public.classes == ("1", "2")
    assert [each.gaps for each in what.public.columns] == [(-9,), (8,)]
    plain = opened(files, "dose=-9", "stage=8", "ill=9")
    np.testing.assert_array_equal(what.parties[0].codes, plain.parties[0].codes[:, :2])


def test_words_and_codes_are_told_apart_by_the_columns():
    names = ["crp", "a=b"]
    assert StatedGaps.of(["k=A", "a=b=9", "CRP=x"], names) == StatedGaps(("k=A",), {"a=b": ("9",), "crp": ("x",)})
    with pytest.raises(ps.DataError, match="--gaps cpr=9 names no column"):
        StatedGaps.of(["cpr=9"], names)
