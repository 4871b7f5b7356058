"""Earlier names of attributes, which scripts may still use for one version."""

from privstats.inference.counts.table import Interval
from privstats.inference.forest import ForestRow


def test_results_answer_to_their_earlier_names() -> None:
    row = ForestRow("age", 1.0, 0.5, 1.5, "")
    assert (row.told, row.said) == (row.reported, row.text) == (True, "1.0 (0.5 to 1.5)")
    assert Interval(0.5, 0.0, 1.0, False).told is False
