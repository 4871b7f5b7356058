"""From files to a score by the commands alone, with numbers that are those of the pooled records."""

from pathlib import Path

import pytest

from benchmarks.inference.three_hospitals import HOSPITALS, walked


@pytest.mark.nightly
def test_a_rare_outcome_is_scored_over_three_hospitals_as_on_their_pooled_records(tmp_path: Path) -> None:
    """By hand the model found nobody, and the score of an exact file said AUC .56 [.12, .96] for .70."""
    commands, rows = walked(tmp_path, 900, 8.0, 4.0)
    by_name = {row["measure"]: row for row in rows}
    assert sum(command.startswith("privstats flower records") for command in commands) == 2 * len(HOSPITALS)
    assert not any("--release" in command for command in commands)
    for name in ("accuracy", "AUC", "sensitivity", "specificity"):
        row = by_name[name]
        assert row["low"] <= row["pooled"] <= row["high"], row
        assert row["own file"] == pytest.approx(row["own, scikit-learn"], abs=1e-9), row
    assert by_name["AUC"]["high"] - by_name["AUC"]["low"] < 0.4
    assert by_name["sensitivity"]["pooled"] > 0.3  # where the second class is never the likelier one
