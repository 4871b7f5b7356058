"""Every number that a table prints has a rival's beside it, or a reason; a number that nobody compares is an error."""

import re

import pytest

from benchmarks.inference.printed_numbers import (
    APART,
    HEAD,
    NOISE,
    TOLERANCE,
    Number,
    Printed,
    Rival,
    compared,
    edges,
    every,
    group_of,
    held,
    numbers,
)
from benchmarks.inference.public_records import PUBLIC
from benchmarks.inference.public_tables import EPSILONS, EXACT, NAME, PRIVATE
from benchmarks.measuring import results
from privstats.inference import Summary

SHOWN = Summary(
    "A table",
    (("records", "1,200 (noisy, standard error 3.1)"),),
    ("", "coef", "noise SE", "P>|z|", "[95%", "]"),
    (("age", "-1.68", "2e-05", "<.0001", "-1.9", "-1.4"), ("age", "-", "-", "0.5000", "-inf", "inf")),
    foot=(),
)
EXPECTED = {
    (HEAD, "records"): [Rival(1_198.0, "pandas"), Rival.none(NOISE)],
    ("age", "coef"): [Rival(-1.6789, "statsmodels", 0.1)],
    ("age", "noise SE"): [Rival.none(NOISE)],
    ("age", "P>|z|"): [Rival(1e-9, "statsmodels")],
    ("age", "95% low"): [Rival(-1.92, "statsmodels")],
    ("age", "95% high"): [Rival(-1.43, "statsmodels")],
    ("age (2)", "P>|z|"): [Rival(0.5001, "statsmodels")],
}


def test_numbers_are_read_as_they_are_printed():
    found = [(each.row, each.column, each.text, each.value, each.unit) for each, _ in numbers(SHOWN)]
    assert found[:2] == [(HEAD, "records", "1,200", 1200.0, 1.0), (HEAD, "records", "3.1", 3.1, pytest.approx(0.1))]
    assert found[2:4] == [
        ("age", "coef", "-1.68", -1.68, pytest.approx(0.01)),
        ("age", "noise SE", "2e-05", 2e-5, pytest.approx(1e-5)),
    ]
    assert found[4][2:] == ("<.0001", pytest.approx(5e-5), pytest.approx(1e-4))
    assert found[-1][:3] == ("age (2)", "P>|z|", "0.5000")
    assert [
        each.text for each, _ in numbers(Summary("", (), ("", "a"), (("x", "1,647 (37.9; 36.4 to 39.3)"),), ()))
    ] == [*("1647", "37.9", "36.4", "39.3")]


def test_a_number_that_nobody_compares_and_an_entry_without_a_number_are_errors():
    allowed = {**EXPECTED, (HEAD, "records"): [Rival(1_198.0, "pandas", design="rounded"), Rival.none(NOISE)]}
    rows = compared("t", SHOWN, allowed)
    assert len(rows) == len(list(numbers(SHOWN)))
    assert [group_of(row) for row in rows].count(APART) == 1
    for key in EXPECTED:
        with pytest.raises(KeyError, match="nobody compares"):
            compared("t", SHOWN, {other: each for other, each in allowed.items() if other != key})
    with pytest.raises(KeyError, match="nobody compares 3.1"):
        compared("t", SHOWN, {**allowed, (HEAD, "records"): allowed[HEAD, "records"][:1]})
    with pytest.raises(KeyError, match="no number is printed"):
        compared("t", SHOWN, {**allowed, ("age", "df"): [Rival(3.0, "scipy")]})


def test_a_difference_without_a_reason_is_an_error():
    with pytest.raises(ValueError, match="no reason"):
        compared("t", SHOWN, EXPECTED)  # 1,200 is not 1,198


@pytest.mark.parametrize(
    ("text", "rival", "agrees"),
    [
        ("1.68", Rival(1.69, ""), True),
        ("1.68", Rival(1.691, ""), False),
        ("1.68", Rival(1.68 + 0.9 * TOLERANCE, "", 1.0), True),
        ("1.68", Rival(1.69 + 1.1 * TOLERANCE, "", 1.0), False),
        ("<.0001", Rival(0.9e-4, ""), True),
        ("<.0001", Rival(1.1e-4, ""), False),
        ("60", Rival(61.0, "", side="low"), True),
        ("60", Rival(61.0, "", side="high"), False),
    ],
)
def test_two_numbers_agree_within_a_unit_or_a_part_of_the_error(text: str, rival: Rival, agrees: bool):
    summary = Summary("", (), ("", "a"), (("x", text),), foot=())
    allowed = {("x", "a"): [Rival(rival.value, "", rival.error, "stated", rival.side)]}
    (row,) = compared("t", summary, allowed)
    assert row["agrees"] is agrees


def test_edges_of_bins_hold_the_number():
    assert [each.side for each in edges(1.5, "")("1 to 2")] == ["low", "high"]
    assert [each.side for each in edges(0.5, "")("below 1")] == ["high"]
    assert [each.side for each in edges(2.5, "")("2 or more")] == ["low"]
    assert len(every("why")("3 of 4")) == 2


def test_what_releases_hold_is_counted():
    spans, noise = ((("coef", 0), ("95% low", 0), ("95% high", 0)),), "coef"
    one = Printed("t", SHOWN, {**EXPECTED, ("age (2)", "coef"): [Rival(1.0, "")]}, 1, spans, noise)
    hides = {("age (2)", column): [Rival(1.0, "")] for column in ("coef", "95% low", "95% high")}
    row = held([one, Printed("t", SHOWN, {**EXPECTED, **hides}, 1, spans, noise)])
    assert (row["releases"], row["intervals"], row["hidden"], row["hold the rival's"]) == (2, 2, 1, 2)
    assert row["width over the rival's"] == pytest.approx(0.5 / 0.49)
    # 1,198 is within 1.96 of the noise in 1,200, and -1.6789 not within that of 2e-05 in -1.68 but for its rounding.
    assert (row["numbers with noise"], row["within 1.96 of its error"]) == (4, 4)
    missed = {**EXPECTED, ("age", "coef"): [Rival(-1.2, "", 0.1)]}
    row = held([Printed("t", SHOWN, missed, 1, spans, noise)])
    assert (row["intervals"], row["hold the rival's"], row["within 1.96 of its error"]) == (1, 0, 1)


def test_no_stored_number_differs_without_a_reason():
    tables = {title: rows for title, rows in results(NAME).items() if title.startswith(EXACT)}
    assert {title.removeprefix(EXACT).partition(":")[0].partition(" in ")[0] for title in tables} == set(PUBLIC)
    for rows in tables.values():
        groups = [group_of(row) for row in rows]
        assert groups.count("agrees") >= 8
    kinds = {row["column"] for rows in tables.values() for row in rows}
    assert kinds >= {"coef", "std err", "z", "P>|z|", "df", "95% low", "95% high", "at risk", "events", "share", "SMD"}


def test_stored_private_releases_hold_the_pooled_numbers():
    """The noise alone moves a number from the pooled one, and an interval counts sampling too."""
    rows = results(NAME)[PRIVATE]
    assert {row["epsilon"] for row in rows} == set(EPSILONS)
    known, held_ = (sum(row[name] for row in rows) for name in ("intervals", "hold the rival's"))
    noisy, near = (sum(row[name] for row in rows) for name in ("numbers with noise", "within 1.96 of its error"))
    assert held_ / known >= 0.95
    assert near / noisy >= 0.9
    assert all(re.fullmatch(r"[\w :]+", row["table"]) for row in rows)


def test_a_number_states_its_unit():
    assert Number("", "", 0, "0.0004").unit == pytest.approx(1e-4)
    assert Number("", "", 0, "1,234").unit == 1.0
