"""What is read of each record: every kind states it, and the code that reads records asks nothing else."""

import pytest

import privstats as ps
from privstats.records import labels
from privstats.records.reading import Labels, Targets, Unread
from tests.schema.samples import SCHEMAS


@pytest.mark.parametrize("schema", SCHEMAS, ids=lambda schema: f"{schema.task}-{schema.statistics}")
def test_a_kind_that_measures_by_a_schema_of_records_reads_what_that_schema_reads(schema: ps.schema.Schema) -> None:
    rows = getattr(schema, "rows", schema)
    assert (schema.reading.features, schema.reading.maps) == (rows.reading.features, rows.reading.maps)
    assert (schema.reading.names, schema.reading.goal) == (rows.reading.names, rows.reading.goal)


def test_y_holds_what_the_kind_says() -> None:
    names = ("ash", "beech")
    assert ps.ClassSchema(2, 3, "NA", 1.0).goal == Labels(range(2))
    assert ps.ClassSchema(2, 3, "NA", 1.0, class_names=names).goal == Labels(names)
    assert ps.RidgeSchema(3, 2, clip_norm=1.0, target_bound=1.0).goal == Targets(2)
    assert ps.RidgeSchema(3, clip_norm=1.0, target_bound=1.0, missing="left out").goal == Targets(1, gaps=True)
    assert ps.MeanSchema(3, 1.0).goal == Unread()


def test_a_count_table_is_read_by_name_and_declared_columns_in_batches() -> None:
    age, cells = ps.Bins("age", (0, 50, 100)), ps.Cells((ps.Numeric("age"),))
    by_name = ps.CountSchema((age,), (("age",),)).reading
    declared = ps.CountSchema((age,), (("age",),), transform=(cells,)).reading
    assert (by_name.columns, by_name.batches) == (("age",), False)
    assert (declared.columns, declared.batches, declared.source) == ((), True, cells)
    assert declared.open_cells  # its counts choose the cut points


def test_labels_are_read_once_where_a_record_cannot_be_read(monkeypatch: pytest.MonkeyPatch) -> None:
    schema = ps.ClassSchema(2, 2, "NA", clip_norm=1.0, class_names=("ash", "beech"))
    expected = ps.measure(schema, [[0.5, 0.0], [0.0, 0.5]], ["ash", "beech"])
    monkeypatch.setattr(labels, "indices_of", None)  # reads labels of batches
    with pytest.warns(ps.errors.UnreadableRecordsWarning):
        found = ps.measure(
            schema, [[0.5, 0.0], ["?", 0.1], [0.0, 0.5]], ["ash", "ash", "beech"], unreadable="leave out"
        )
    assert found == expected
