"""The comparison's runs: a data set has one commit and one search, and what was measured is not measured again."""

import json
from argparse import Namespace

import pytest

from benchmarks.refinement import compare
from benchmarks.refinement.models import Draws


@pytest.fixture
def options(tmp_path, monkeypatch):
    asked = []

    def model(split, epsilon, draws):
        asked.append(epsilon)
        return Draws([50.0 + epsilon] * draws)

    monkeypatch.setattr(compare, "MODELS", {"LDA": model, "refined": model, "other": model})
    monkeypatch.setattr(compare, "_commit", lambda: "abc")
    chosen = Namespace(quick=True, tasks=None, keep=False, json=tmp_path / "saved.json", figures=None, asked=asked)
    chosen.models, chosen.epsilons, chosen.draws = ["LDA"], [1.0], 2
    return chosen


def written(options):
    found = dict(compare.tables(options))
    options.json.write_text(json.dumps(found))
    return found


def test_a_cell_that_is_there_is_not_measured_again(options):
    first = written(options)
    assert options.asked == [1.0, 1.0]  # LDA and refined, on digits
    options.keep = True
    assert written(options) == first
    assert options.asked == [1.0, 1.0]
    (lda, refined) = first[compare.TITLE + "digits"]
    assert (lda["model"], lda["eps 1"], refined["model"]) == ("LDA", 51.0, "refined")


def test_a_data_set_of_another_commit_is_kept_as_it_is(options, monkeypatch):
    first = written(options)
    options.keep = True
    monkeypatch.setattr(compare, "_commit", lambda: "later")
    monkeypatch.setattr(compare, "QUICK", ("other",))
    assert written(options) == first
    assert options.asked == [1.0, 1.0]
    assert [(run["data"], run["commit"]) for run in first[compare.RUN]] == [("digits", "abc")]


@pytest.mark.parametrize("change", [{"search": "smaller"}, {"draws": 3}])
def test_cells_of_another_run_are_refused(options, change):
    found = written(options)
    found[compare.RUN] = [{**found[compare.RUN][0], **change}]
    options.json.write_text(json.dumps(found))
    options.keep = True
    with pytest.raises(SystemExit, match="holds another run"):
        written(options)


def test_a_model_with_fewer_draws_is_an_error(options, monkeypatch):
    monkeypatch.setitem(compare.MODELS, "LDA", lambda *_: Draws([1.0]))
    with pytest.raises(ValueError, match="has 1 draws, not 2"):
        written(options)


def test_small_data_sets_come_first_then_models_one_by_one(monkeypatch):
    splits = dict.fromkeys(("small", "large", "larger"))
    sizes = iter([0, compare._LARGE, compare._LARGE])
    monkeypatch.setattr(compare, "_size", lambda split: next(sizes))
    found = list(compare._cells(splits, ["RDA", "LDA"], [1.0]))
    assert found == [
        ("small", "LDA", 1.0),
        ("small", "RDA", 1.0),
        ("large", "LDA", 1.0),
        ("larger", "LDA", 1.0),
        ("large", "RDA", 1.0),
        ("larger", "RDA", 1.0),
    ]
