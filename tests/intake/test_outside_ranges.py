"""Values outside the ranges that a plan declares, counted for the data holder before a run."""

from pathlib import Path

import privstats as ps
from privstats.moments import RecordFile
from privstats.records.outside_ranges import outside_remarks

SCHEMA = ps.EffectSchema.of({"age": (18, 95), "crp": (0, 100)}, treatment="arm", outcome=(0, 1), probability=0.5)


def _remarks(place: Path, rows: list[tuple[object, ...]]) -> list[str]:
    lines = ["age,crp,arm,ill", *(",".join(map(str, row)) for row in rows)]
    (place / "north.csv").write_text("\n".join(lines) + "\n")
    return list(outside_remarks(RecordFile(place / "north.csv", "ill"), SCHEMA.reading))


def test_gap_codes_outside_a_declared_range_are_counted(tmp_path: Path) -> None:
    rows = [(40, 3.5, 0, 1)] * 7 + [(50, -9, 1, 0)] * 2 + [(50, 150, 1, 0)] + [(60, "", 1, 0)]
    (remark,) = _remarks(tmp_path, rows)
    assert remark.startswith("3 of 10 values of crp lie outside its declared range 0 to 100, most often -9 (2)")
    assert "empty those fields, so that they count as missing" in remark


def test_values_at_the_ends_of_a_range_lie_inside(tmp_path: Path) -> None:
    assert _remarks(tmp_path, [(18, 0, 0, 1), (95, 100, 1, 0)]) == []
    assert (
        list(outside_remarks(RecordFile(tmp_path / "north.csv", "ill"), ps.ClassSchema(2, 2, "NA", 1.0).reading)) == []
    )
