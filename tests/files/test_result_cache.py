"""Finished rows outlive a stop; what the stop cut off is made again."""

from dataclasses import dataclass

from privstats.files.result_cache import ResultCache


@dataclass(frozen=True)
class Row:
    name: str
    score: float | None = None


def test_rows_are_kept_once_by_their_key(tmp_path):
    path = tmp_path / "rows.jsonl"
    kept = ResultCache(Row, path)
    kept.put("a", (Row("x", 0.1),))
    kept.put("a", (Row("y"),))
    kept.put("b", ())
    again = ResultCache(Row, path)
    assert (again.get("a"), again.get("b"), again.get("c")) == ((Row("x", 0.1),), (), None)


def test_a_line_that_was_cut_off_is_made_again(tmp_path):
    path = tmp_path / "rows.jsonl"
    ResultCache(Row, path).put("a", (Row("x"),))
    with path.open("ab") as file:
        file.write(b'\n["b", [{"na')
    stopped = ResultCache(Row, path)
    assert stopped.get("b") is None
    stopped.put("b", (Row("z"),))
    assert ResultCache(Row, path).get("b") == (Row("z"),)


def test_without_a_file_rows_are_in_memory():
    kept = ResultCache(Row, None)
    kept.put("a", [Row("x")])
    assert kept.get("a") == (Row("x"),)
