"""A survey of 200 devices in two languages, from ``plan init --task survey`` to a mean with its interval."""

import pytest

pytest.importorskip("uvicorn")

from tests.contrib.http.survey import PEOPLE, survey
from tests.javascript.node import needs_node

pytestmark = [needs_node, pytest.mark.nightly]


def test_a_survey_in_two_languages_releases_a_mean_whose_interval_is_around_the_truth() -> None:
    found = survey()
    assert found.sent == {"sent": PEOPLE}
    english, german = (found.asked[language] for language in ("en", "de"))
    assert english["title"] == "Work and smoking"
    assert english["questions"][1] == ["Do you smoke?", ["yes", "no"]]
    assert german["questions"] == [
        ["Wie alt sind Sie?", []],
        ["Rauchen Sie?", ["ja", "nein"]],
        ["Wie viele Stunden arbeiten Sie in der Woche?", []],
    ]
    assert "1 zu 1.000.000" in german["promise"]
    assert "1 in 1,000,000" in english["promise"]
    names = [each.name for each in found.intervals]
    assert names[:3] == ["mean of hours", "variance of hours", "share of smokes = yes"]
    for each in found.intervals:  # of a 95 % interval three half widths, because noise is real here
        half = max(each.high - each.value, each.value - each.low)
        assert abs(each.value - each.truth) < 3 * half, each
    mean = found.intervals[0]
    assert mean.high - mean.low < 16  # a fifth of the range
