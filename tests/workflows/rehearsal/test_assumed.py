"""What a rehearsal takes for public is a guess at a data dictionary, and every part of it is said."""

import numpy as np
import pytest

import privstats as ps
from privstats.intake.columns import read
from privstats.workflows.forms import form_remarks, toml_of
from privstats.workflows.rehearsal.assumed import assumed_of, kinds_of
from privstats.workflows.rehearsal.stated import StatedGaps

RNG = np.random.default_rng(0)
N = 60
TARGET = ["no", "yes"] * (N // 2)
NAMING = f"{N} different values in {N} records, as numbers of persons or records have"
RECURRING = (
    "names, ids or free text that recur; name it with --persons (in Python persons=) if it shows whose a record is"
)


def kind(values, name="x"):
    """The declaration of one column, or why it is left out."""
    found = assumed_of({name: read(values), "y": read(TARGET), "z": read(RNG.normal(size=N))}, "y", N)
    return found.left_out.get(name) or next(each for each in found.columns if each.name == name)


@pytest.mark.parametrize(
    ("values", "said"),
    [
        (RNG.normal(size=N), ps.Numeric("x")),
        ([*map(str, RNG.normal(size=N - 2)), "", "<0.5"], ps.Numeric("x")),
        ([0, 1] * (N // 2), ps.Truth("x")),
        (["true", "False"] * (N // 2), ps.Truth("x")),
        ([1, 2, 3] * (N // 3), ps.Categories("x", (1, 2, 3), other=True, missing=True)),
        ([0.5, 1.5] * (N // 2), ps.Numeric("x")),
        (list(range(N)), NAMING),
        (RNG.permutation(N), NAMING),
        ([12.5, *range(N - 1)], ps.Numeric("x")),
        ([f"2024-01-{1 + place % 28:02d}" for place in range(N)], ps.Dates("x")),
        (["2024-01-01"] * N, "one value alone"),
        (["a", "b"] * (N // 2), ps.Categories("x", ("a", "b"), other=True, missing=True)),
        (["a", ""] * (N // 2), ps.Categories("x", (), other=True, missing=True)),
        ([f"patient {place}" for place in range(N)], "names, ids or free text"),
        ([f"patient {place // 3}" for place in range(10 * N)], RECURRING),  # of three visits each
        ([3.0] * N, "one value alone"),
        (["same"] * N, "one value alone"),
        (["", None] * (N // 2), "empty"),
        (
            [2.0**60, 2.0**61] * (N // 2),
            "its numbers are long and have at most 15 digits that are not zero, so several ids are one number",
        ),
        (["a\u0000b\u2028c", "d"] * (N // 2), ps.Categories("x", (), other=True, missing=True)),
    ],
)
def test_a_column_is_taken_for_what_most_of_it_is(values, said):
    found = kind(values)
    if isinstance(found, ps.Categories):
        found = ps.Categories(found.name, found.values, other=True, missing=True)
    assert found == said


def test_a_name_that_no_plan_holds_is_left_out():
    assert kind(RNG.normal(size=N), name="x" * 300) == "a plan cannot list its name or values"


def test_of_many_texts_the_twelve_most_frequent_are_listed():
    values = [f"ward {place % 13}" for place in range(N - 2)] + ["ward 12"] * 2
    assert len(kind(values).values) == 12
    assert "ward 12" in kind(values).values


def test_classes_are_in_one_order_whatever_the_file_has():
    table = {"x": read(RNG.normal(size=4))}
    for labels, classes in (
        (["yes", "no"] * 2, ("no", "yes")),
        ([1, 0, 1, None], ("0", "1")),
        ([True, False] * 2, ("0", "1")),
    ):
        assert assumed_of({**table, "y": read(labels)}, "y", 4).classes == classes
    for labels, told in ((["yes"] * 4, "one value"), (list(map(str, range(40))), "more than 20 different values")):
        with pytest.raises(ps.DataError, match=f"y has {told}, and a rehearsal predicts one of a few classes"):
            assumed_of({"x": read(RNG.normal(size=len(labels))), "y": read(labels)}, "y", 4)
    with pytest.raises(ps.DataError, match="no column other than the target"):
        assumed_of({"x": read([1] * 4), "y": read(["no", "yes"] * 2)}, "y", 4)


def test_all_that_is_taken_for_public_is_said():
    table = {"age": read(RNG.normal(size=N)), "sex": read(["f", "m"] * (N // 2)), "id": read(list(range(N)))}
    found = assumed_of({**table, "ill": read(TARGET)}, "ill", 1234)
    said = {each.what: each.assumed for each in found.sentences}
    assert said == {
        "columns": "age, sex",
        "their kinds": "numbers: age; categories: sex",
        "values of sex": "f, m",
        "classes of ill": "no, yes",
        "number of records": "1,234",
        "not read": f"id: {NAMING}",
    }
    assert all(each.elsewhere for each in found.sentences)


def form(values, gaps=()):
    """The declaration of one column of texts, as its file has them, or why it is left out."""
    found = kinds_of({"x": read(values)}, {"x": values}, StatedGaps(gaps))["x"]
    return found if isinstance(found, str) else f"{found.kind} {toml_of(found)}".strip()


DAYS = [f"{1 + 7 * place % 28:02d}.{1 + place % 12:02d}.2019" for place in range(N)]
ISO = [f"2019-{1 + place % 12:02d}-{1 + 7 * place % 28:02d}" for place in range(N)]
LABS = [f"{3 + place * 0.7:.1f}" for place in range(N)]


@pytest.mark.parametrize(
    ("values", "said"),
    [
        ([*LABS[:20], *["-"] * 40], 'numeric gaps = ["-"]'),
        ([*LABS[:30], *[".a"] * 20, *["."] * 10], 'numeric gaps = [".a", "."]'),
        ([*LABS[:40], *["hemolysed"] * 20], "numeric"),  # a fifth to a half that cannot be read: numbers all the same
        ([f"{lab} mg" for lab in LABS], 'numeric suffix = "mg"'),
        ([f"{lab} {('mg', 'g')[place % 2]}" for place, lab in enumerate(LABS)], "numeric"),
        ([f"{lab.replace('.', ',')}" for lab in LABS],
            "60 of 60 look like numbers with a decimal comma: pass --decimal ,"),
        ([f"1,{place:03d}.5" for place in range(N)],
            "60 of 60 look like numbers with a thousands sign ',': pass --thousands ,"),
        ([f"{lab.replace('.', ',')} mg/l" for lab in LABS],
            "60 of 60 look like numbers with a decimal comma: pass --decimal ,"),
        (DAYS, 'dates written = "DD.MM.YYYY"'),
        ([*DAYS[:50], *["k.A."] * 10], 'dates gaps = ["k.A."], written = "DD.MM.YYYY"'),
        ([*DAYS[:30], *(f"{place % 12 + 1}/{place % 27 + 1}/2019" for place in range(30))],
            "60 of 60 look like dates in several forms"),
        (["28.03.2019", "04/28/2019"] * (N // 2), "60 of 60 look like dates in several forms"),  # and no categories
        ([*DAYS[:30], *ISO[:30]], 'dates written = "DD.MM.YYYY"'),
        ([*DAYS[:30], *ISO[:29], "31.02.2020"], 'dates written = "DD.MM.YYYY"'),
        ([*DAYS[:9], "31.02.2020"], 'dates written = "DD.MM.YYYY"'),
        ([*DAYS[:9], ""], 'dates written = "DD.MM.YYYY"'),
        ([*DAYS * 10, *ISO[:40]], 'dates written = "DD.MM.YYYY"'),
        (["31.02.2020"] * 30 + ["30.02.2020"] * 30, "categories"),  # no date at all
        ([f"~{lab}" for lab in LABS], "60 of 60 look like numbers with a sign before them"),
        ([f"ca. {lab}" for lab in LABS], "60 of 60 look like numbers with a sign before them"),
        ([f"{place}-{place + 5}" for place in range(N)], "60 of 60 look like numbers with a dash between two"),
        ([f"{lab} \u00b1 2" for lab in LABS], "60 of 60 look like numbers with a spread behind"),
        ([f"{90 + place}/{60 + place % 40} mmHg" for place in range(N)], "60 of 60 look like numbers with a slash"),
        ([f"<1:{40 + place}" for place in range(N)], "60 of 60 look like numbers with a colon"),
        ([f"{lab}x10^3" for lab in LABS], "60 of 60 look like numbers with a power of ten"),
        ([f"({lab})" for lab in LABS], "60 of 60 look like numbers with brackets around them"),
        ([f"{20 + place}y {place % 12}m" for place in range(N)], "60 of 60 look like numbers with two units"),
        ([f"{4 + place % 3}'{place / 10}\"" for place in range(N)], "60 of 60 look like numbers with feet and inches"),
        ([f"{place} 1/2" for place in range(N)], "60 of 60 look like numbers with a fraction"),
        ([f"{1 + place % 12}/{1960 + place}" for place in range(N)], "60 of 60 look like months without a day"),
        ([f"{1 + place % 28}. Februar {1960 + place}" for place in range(N)], "60 of 60 look like dates with the name"),
        ([f"Feb {1 + place % 28}, {1960 + place}" for place in range(N)], "60 of 60 look like dates with the name"),
        ([f"Mo. 01.02.{1960 + place}" for place in range(N)], "60 of 60 look like dates with other words"),
        ([f"01.02.{1960 + place} 10:30 Uhr" for place in range(N)], "60 of 60 look like dates with other words"),
        (["5A11", "8A00", "2E60", "6B41"] * (N // 4), "categories"),
        ([f"{123 + place}-{place % 90 + 10}-{4567 + place}" for place in range(N)], "names, ids or free text"),
        ([f"{1000 + place}-{place % 10}" for place in range(N)], "names, ids or free text"),
        (["042", "42", "V30"] * (N // 3), "categories as_text = true"),
        (["1E30", "5A11"] * (N // 2), "categories as_text = true"),
        (["1E5", "2.5", "3.5"] * (N // 3), "numeric"),
        ([f"{place * 37 % 50:03d}" for place in range(N)], "numeric"),
        ([f"{place * 37 % 100:03d}" for place in range(N)], NAMING),
        ([f"0{place}" for place in range(N)], "names, ids or free text"),
    ],
)  # fmt: skip
def test_what_looks_like_numbers_or_dates_is_never_free_text(values, said):
    assert form(values).startswith(said)
    assert "free text" not in form(values) or said.endswith("free text")


def test_a_word_that_a_person_states_is_a_gap_in_every_column():
    assert form([*LABS[:30], *["zz"] * 30], ("zz",)) == 'numeric gaps = ["zz"]'
    assert form(["a", "b", "zz"] * (N // 3), ("zz",)) == 'categories gaps = ["zz"]'
    table = {"x": read(LABS), "y": read(["no", "yes", "zz", "-"] * (N // 4))}
    found = assumed_of(table, "y", N, stated=StatedGaps(("zz",)))
    assert found.classes == ("no", "yes")
    assert found.gaps == {"y": ("-", "zz")}


@pytest.mark.parametrize(
    ("column", "values", "said"),
    [
        (ps.Numeric("x", gaps=("-",)), [*LABS[:50], *["-"] * 10], "of 60 values, read as a gap: - (10); is that so?"),
        (ps.Numeric("x", censored=True), LABS, None),
        (ps.Numeric("x", censored=True), [*LABS[:50], *["<0.01"] * 9, ">500"],
            "values such as <0.01 (9) and >500 (1) are read as just below and just above that number"),
        (ps.Numeric("x", censored=True), [*LABS[:59], ">=500"],
            "values such as >=500 (1) are read as just above that number"),
        (ps.Dates("x", written="MM/DD/YYYY"), ["01/02/2019", "03/04/2019"],
            "read as MM/DD/YYYY, and DD/MM/YYYY fits as well"),
        (ps.Dates("x", written="MM/DD/YYYY"), ["01/02/2019", "03/14/2019"], None),
        (ps.Numeric("x"), [str(43000 + 13 * place) for place in range(N)],
            "state kind dates, written = 'days since 1899-12-30'"),
    ],
)  # fmt: skip
def test_a_form_that_was_guessed_is_asked_of_a_person(column, values, said):
    remarks = list(form_remarks(column, column.readings(values)))
    assert remarks == [] if said is None else said in remarks[0]


@pytest.mark.parametrize("codes", [("042", "42", "V30"), ("1E30", "1E50", "BA00")])
def test_codes_are_listed_as_they_are_written(codes):
    """They were "any text", because two of them are one number, or a number beyond every integer that floats hold."""
    values = [*codes] * (N // 3)
    column = kinds_of({"x": read(values)}, {"x": values})["x"]
    assert (column.values, column.as_text) == (codes, True)
