"""What a hospital sees of its own file before it joins: the likely mistakes, by name."""

import numpy as np
import pytest

import privstats as ps
from privstats.workflows.look import keys_of, looked

AGES = [*range(20, 80)] * 3


@pytest.mark.parametrize(
    ("column", "values", "said"),
    [
        (ps.Numeric("x"), [f"{age},5" for age in AGES],
            "180 unreadable: decimal comma? 180 of 180 look like numbers with a decimal comma: pass --decimal ,"),
        (ps.Numeric("x"), [f"{age} mg" for age in AGES],
            '180 unreadable: units or signs in the cells? To read them, state suffix = "mg" in columns.toml'),
        (ps.Numeric("x"), [*AGES, *["<0,01"] * 9, *["k.A."] * 2],
            "11 unreadable: units or signs in the cells? "
            'To read them, state gaps = ["k.A."], censored = true in columns.toml'),
        (ps.Numeric("x"), [*AGES, "<0.5"],
            "1 unreadable: units or signs in the cells? To read them, state censored = true in columns.toml"),
        (ps.Numeric("x"), [*AGES, *["-"] * 9, *["#DIV/0!"] * 4],
            "13 are no numbers, such as -, #DIV/0!: correct it, or they count as missing. "
            'To read them, state gaps = ["-", "#DIV/0!"] in columns.toml'),
        (ps.Numeric("x"), [*AGES, "soon"], "1 are no numbers, such as soon: correct it, or they count as missing"),
        (ps.Numeric("x"), [*AGES, *[999] * 10],
            "999 is in 5.3%: a gap code? Then state gaps = [999] in columns.toml, or empty these fields where the plan "
            "has no columns.toml, as that of an effect"),
        (ps.Numeric("x"), [*AGES, *[-9] * 10],
            "-9 is in 5.3%: a gap code? Then state gaps = [-9] in columns.toml, or empty these fields where the plan "
            "has no columns.toml, as that of an effect"),
        (ps.Dates("x"), ["03/04/2020"] * 4,
            "4 unreadable: dates not written as 2020-01-31? "
            """To read them, state written = "MM/DD/YYYY" or 'DD/MM/YYYY' in columns.toml"""),
        (ps.Dates("x"), ["20200102"] * 4,
            "4 are no dates, such as 20200102: correct it, or they count as missing. "
            'To read them, state written = "YYYYMMDD" in columns.toml'),
        (ps.Dates("x"), ["2019-03-28T00:00+01:00", "2019-07-28T00:00+02:00"],
            "all are at 22:00 or 23:00. If that is midnight of your time zone, these are dates, and dates without a "
            'zone of another hospital differ from them: state written = "ISO in Europe/Berlin", with your zone, in '
            "columns.toml, or export dates without a time"),
        (ps.Dates("x"), ["2019-03-28T00:00+01:00", "2019-04-02", "2019-07-28T00:00+02:00", "2019-05-03"],
            "those with a time are at 22:00 or 23:00. If that is midnight of your time zone, these are dates, and "
            'dates without a zone of another hospital differ from them: state written = "ISO in Europe/Berlin", with '
            "your zone, in columns.toml, or export dates without a time"),
        (ps.Truth("x"), ["ja", "nein"] * 4,
            "8 are neither true nor false, such as ja, nein: correct it, or they count as missing. "
            'To read them, state values = ["ja", "nein"] or ["nein", "ja"], what means no first, in columns.toml'),
        (ps.Truth("x"), [*["WAHR", "FALSCH"] * 4, "-", "-"],
            "10 are neither true nor false, such as WAHR, FALSCH, -: correct it, or they count as missing. "
            'To read them, state gaps = ["-"], values = ["FALSCH", "WAHR"] or ["WAHR", "FALSCH"], what means no first, '
            "in columns.toml"),
        (ps.Numeric("x", censored=True), ["<0.5", "<0.5", "<0.5", "See note"],
            "1 are no numbers, such as See note: correct it, or they count as missing"),
        (ps.Numeric("x"), ["\x01", "\x01", 1.5],
            "2 are no numbers, such as a value that this file's decimal mark or type does not allow: correct it, or "
            "they count as missing"),
        (ps.Truth("x"), ["yes", "no", "-"],
            "1 are neither true nor false, such as -: correct it, or they count as missing. "
            'To read them, state gaps = ["-"] in columns.toml'),
        (ps.Truth("x"), ["ja", "-", "ja"],
            "3 are neither true nor false, such as ja, -: correct it, or they count as missing. "
            'To read them, state gaps = ["-"], or values = ["-", "ja"] or ["ja", "-"], what means no first, in '
            "columns.toml"),
        (ps.Truth("x", values=("nein", "ja")), ["oui", "non", "k.A."],
            "3 are neither true nor false, such as oui, non, k.A.: correct it, or they count as missing. "
            'To read them, state gaps = ["k.A."] in columns.toml'),
        (ps.Truth("x"), [2, 3, 2],
            "3 are neither true nor false, such as 2, 3: correct it, or they count as missing. "
            "To read them, state values = [2, 3] or [3, 2], what means no first, in columns.toml"),
        (ps.Categories("x", ("f", "m", "d")), ["F", "m", "f", "F"],
            "2 are not listed, such as F: another spelling? By case alone differs F for f"),
        (ps.Categories("x", ("f", "m")), ["F", "m", "f", "F"],
            "2 are not listed, such as F: another spelling? By case alone differs F for f"),
        (ps.Categories("x", ("f", "m", "d")), ["w", "", "w"], "all 2 are not listed, such as w: another spelling?"),
        (ps.Categories("x", ("f", "m", "d")), ["f", "-9", "-9"], "2 are not listed, such as -9: a gap code?"),
        (ps.Categories("x", ("f", "m", "d")), ["f", "w", "-9", "-9"],
            "3 are not listed, such as -9, w: another spelling, and -9 a gap code?"),
        (ps.Categories("x", ("f", "m", "-9")), ["f", "w", "-9", -9],
            "1 are not listed, such as w: another spelling?"),
    ],
)  # fmt: skip
def test_a_likely_mistake_is_named(column, values, said):
    assert looked(column, values).remarks == (said,)


@pytest.mark.parametrize(
    ("written", "values"),
    [
        ("", ["2019-03-28T09:30+01:00", "2019-03-28T00:00+01:00", "2019-07-28"]),
        ("ISO in Europe/Berlin", ["2019-03-28T00:00+01:00"] * 2),
    ],
)
def test_dates_and_times_of_a_declared_zone_are_no_question(written, values):
    assert looked(ps.Dates("x", written=written), values).remarks == ()


def test_every_spelling_that_differs_by_case_is_named():
    """They stopped at three, so that Icu for ICU was dropped without a word."""
    values = ("ICU", "ER", "OR", "CCU", "ward")
    (remark,) = looked(
        ps.Categories("x", values), ["Ward", "Ward", "Er", "Er", "Or", "Or", "Ccu", "Ccu", "Icu"]
    ).remarks
    assert remark.endswith("By case alone differs Ward for ward, Er for ER, Or for OR, Ccu for CCU, Icu for ICU")
    many = [f"Ward {place}" for place in range(14)]
    (remark,) = looked(ps.Categories("x", tuple(map(str.lower, many))), many).remarks
    assert remark.endswith("Ward 11 for ward 11 and 2 more")


@pytest.mark.parametrize(
    ("column", "values"),
    [
        (ps.Numeric("x", gaps=(999,)), [*AGES, *[999] * 10]),
        (ps.Numeric("x"), [*AGES, 99]),
        (ps.Numeric("x"), [8, 9] * 9),
        (ps.Categories("x", ("f", "m", "d"), gaps=("u",)), ["f", "m", "u", ""]),
        (ps.Categories("x", ()), ["anything", None]),
    ],
)
def test_what_is_as_declared_is_not_remarked(column, values):
    assert looked(column, values).remarks == ()


def test_quartiles_gaps_and_ends_are_counted():
    found = looked(ps.Numeric("age", (30, 70), gaps=(-1,), unit="years"), [*map(str, AGES), "", "NA", -1, "old"])
    assert (found.values, found.unit) == ("34 | 49 | 64", "years")
    assert (found.records, found.missing, found.unreadable, found.other, found.outermost) == (184, 3, 1, 0, 60)
    days = looked(ps.Dates("seen"), ["2024-01-01T12:00", "2024-01-03", None])
    assert days.values == "2024-01-01 | 2024-01-01 | 2024-01-03"
    assert looked(ps.Dates("seen"), [None]).values == "none"
    shares = looked(ps.Categories("sex", ("f", "m", "d")), ["f", "f", "m", "x"])
    assert (shares.values, shares.other, shares.outermost) == ("f 50%, m 25%, d 0%", 1, None)
    assert looked(ps.Truth("smokes"), [True, "false", 1, 0]).values == "false 50%, true 50%"
    assert looked(ps.Truth("on", values=("nein", "ja")), ["ja", "nein", None]).values == "nein 33%, ja 33%"


def test_rows_of_a_key_are_counted_however_it_is_written():
    found = keys_of(["7", "007", 7.0, "anna", "anna ", "", None])
    assert (found.keys, found.records, found.most, found.repeated) == (2, 5, 3, True)
    assert not keys_of(np.arange(9)).repeated


def test_nothing_of_it_is_shown_by_accident():
    for found in (looked(ps.Numeric("age"), AGES), keys_of([1, 1, 1])):
        assert repr(found).startswith(f"<{type(found).__module__}.{type(found).__name__} object at ")


@pytest.mark.parametrize("code", [-9.0, -99.0, 999.0, 9999.0, -999.0])
@pytest.mark.parametrize("many", [3, 12, 40])
@pytest.mark.parametrize("kind", ["ages", "skewed", "counts", "scale"])
def test_a_rare_number_far_from_all_others_is_a_question(code, many, kind):
    """Below 1 % of the records it was silent, and moved every mean."""
    rng = np.random.default_rng(many)
    drawn = {
        "ages": rng.normal(60, 12, 4000).clip(18, 98).round(1),
        "skewed": rng.lognormal(2, 0.8, 4000).round(1),
        "counts": rng.poisson(6, 4000).astype(float),
        "scale": rng.integers(0, 8, 4000).astype(float),
    }[kind]
    drawn[:many] = code
    assert looked(ps.Numeric("x"), drawn).codes == {code: many}
    assert not looked(ps.Numeric("x"), drawn[many:]).codes, "and no other value is one"


def test_a_rare_number_among_others_is_no_question():
    rng = np.random.default_rng(0)
    for values in (rng.normal(0, 10, 4000).round(), rng.integers(18, 97, 4000).astype(float), np.arange(4000.0)):
        assert not looked(ps.Numeric("x"), values).codes
