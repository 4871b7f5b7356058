"""Numbers of trials and registries without noise are those of R, statsmodels and lifelines on the pooled records."""

from functools import cache
from typing import Any

import pytest

from benchmarks.inference import in_r, references
from benchmarks.inference.references import Compared

pytest.importorskip("statsmodels", reason="compares with statsmodels, which is not installed")

WITHIN = {  # of the reference's value, where both are the same number; rounds and grids leave the rest
    "log-rank statistic": 1e-6,
    "log odds ratio of arm x sex": 2e-3,
    "its robust error": 0.02,
    "its quasi-Poisson error": 0.12,  # Pearson's mean of ratios, where ours is the ratio of sums
    "dispersion alpha of counts cut at 8": 0.1,  # the cut lowers a ratio of sums more than a likelihood's
    "its standard error": 0.03,
    "P of non-inferiority": 0.2,
    "its P": 0.1,
    "difference of effects by sex": 0.02,
}
EXACT = 1e-4
ERRORS = 0.3
"""Standard errors by which an estimate in bins of time, or with other weights, may differ."""


@cache
def rows(part: Any) -> tuple[Compared, ...]:
    return tuple(part())


def check(each: Compared) -> None:
    assert each.part[0] in "12345678"
    if each.error is not None:
        assert abs(each.ours - each.theirs) < ERRORS * each.error, each
    else:
        bound = WITHIN.get(each.number, EXACT)
        assert each.ours == pytest.approx(each.theirs, rel=bound, abs=EXACT * bound), each


def named(part: Any) -> str:
    return str(part.__name__)


OF_PYTHON = [part for part in references.PARTS if part not in (references.late_ratios, references.fine_and_gray)]


@pytest.mark.parametrize("part", OF_PYTHON, ids=named)
def test_numbers_are_those_of_python_packages_and_of_papers(part: Any) -> None:
    found = [each for each in rows(part) if not each.reference.startswith("R ")]
    assert found
    for each in found:
        check(each)


@pytest.mark.skipif(not in_r.r_version("survival"), reason="compares with R and its survival, which are not installed")
@pytest.mark.parametrize("part", references.PARTS, ids=named)
def test_numbers_are_those_of_r(part: Any) -> None:
    found = [each for each in rows(part) if each.reference.startswith("R ")]
    if not found:
        pytest.skip("the R packages of this part are not installed")
    for each in found:
        check(each)


def test_all_eight_parts_are_in_the_stored_table() -> None:
    stored = references.stored(references.NAME)[references.TITLE]
    assert {row["part"][0] for row in stored} == set("12345678")
    assert {row["reference"].partition(" ")[0] for row in stored} >= {"R", "statsmodels", "lifelines"}
    for row in stored:
        check(Compared(**{name: row[name] for name in Compared.__dataclass_fields__}))


def test_without_r_its_rows_are_absent(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(references, "r_version", lambda package: "")
    found = list(references.late_curves())
    assert {each.reference.partition(" ")[0] for each in found} <= {"statsmodels", "lifelines"}
    assert not list(references.fine_and_gray())
