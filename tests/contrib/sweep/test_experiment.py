"""A study says what it drew, draws the same again, and goes on where it was stopped."""

import csv
import dataclasses
import io
import json
import math
import statistics

import numpy as np
import pytest
from scipy.stats import t as student

import privstats as ps
from privstats.contrib.sweep import Axes, Frame, drawn, job_count, study
from privstats.contrib.sweep import draws as work
from privstats.moments import exact_moments
from tests.made import refused

from .test_sweep import PLAN, TEST, TRAIN

HEADS = {"LDA": ps.heads.LDA, "NaiveBayes": ps.heads.NaiveBayes}
AXES = Axes(model=["central", "local"], alpha=[0.1, 10.0], epsilon=[0.02, 0.3])


def found(axes=AXES, plan=PLAN, heads=HEADS, **how):
    return study(plan, TRAIN, TEST, heads, axes, **{"repeats": 3, "seed": 1, "with_baselines": False} | how)


@pytest.fixture(scope="module")
def result():
    return found(with_baselines=True)


def test_there_is_a_row_for_every_point_head_and_draw(result):
    assert len(result.draws) == 2 * 2 * (1 + 2 * 2 * 3)  # alphas, heads: without noise once, models x epsilons x draws
    assert set(result.draws["model"]) == {"none", "central", "local"}
    assert set(result.draws["epsilon"]) == {None, 0.02, 0.3}
    assert (len(set(result.draws.rows)), job_count(PLAN, AXES, 3)) == (len(result.draws), 2 * 3)


def test_means_deviations_and_intervals_are_those_of_the_raw_draws(result):
    point = {"model": "local", "alpha": 0.1, "epsilon": 0.02, "head": "LDA"}
    (row,) = result.summary.where(**point)
    scores = result.draws.where(**point)["score"]
    assert (row["draws"], row["mean"]) == (3, pytest.approx(statistics.fmean(scores)))
    assert row["deviation"] == pytest.approx(np.std(scores, ddof=1))
    low, high = student.interval(0.95, 2, np.mean(scores), np.std(scores, ddof=1) / math.sqrt(3))
    assert (row["low"], row["high"]) == (pytest.approx(low), pytest.approx(high))
    (exact,) = result.summary.where(model="none", alpha=0.1, head="LDA")
    assert (exact["draws"], exact["deviation"], exact["low"]) == (1, None, None)


def test_balanced_accuracy_stands_beside_accuracy(result):
    from sklearn.metrics import balanced_accuracy_score

    (row,) = result.draws.where(model="none", alpha=0.1, head="LDA")
    release = ps.Release.exact(PLAN.schema, ps.measure(PLAN.schema, *TRAIN))
    head = ps.heads.LDA().fit_release(release)
    assert row["balanced"] == pytest.approx(balanced_accuracy_score(TEST[1], head.predict(TEST[0])))
    (mean,) = result.summary.where(model="local", alpha=0.1, epsilon=0.02, head="LDA")
    of_draws = result.draws.where(model="local", alpha=0.1, epsilon=0.02, head="LDA")["balanced"]
    assert mean["balanced"] == pytest.approx(statistics.fmean(of_draws))


def test_skew_does_not_change_sums_that_do_not_ask_whose_a_record_is(result):
    """Partition invariance, as equality of every score and not of a mean."""
    one, other = (result.draws.where(alpha=alpha)["score"] for alpha in (0.1, 10.0))
    assert one == other


def test_the_sums_of_an_even_partition_are_measured_once(monkeypatch):
    measured = []
    monkeypatch.setattr(work, "exact_moments", lambda *given: measured.append(given) or exact_moments(*given))
    evenly = found(Axes(epsilon=[1.0], clip_norm=[4.0, 8.0]))
    assert len(measured) == 2 * PLAN.cohort.clients
    monkeypatch.setattr(
        work, "_measured", lambda _, __, plan, shards, **___: [exact_moments(plan.schema, *shard) for shard in shards]
    )
    assert found(Axes(epsilon=[1.0], clip_norm=[4.0, 8.0])).to_json() == evenly.to_json()


def test_skew_changes_what_a_limited_client_may_bring():
    axes = Axes(unit=["client"], alpha=[0.05, 100.0], epsilon=[3.0], records_per_client=130)
    both = found(axes, heads={"LDA": ps.heads.LDA})
    skewed, even = (both.draws.where(alpha=alpha, unit="client")["score"] for alpha in (0.05, 100.0))
    assert skewed != even


@pytest.mark.nightly
def test_the_same_seed_is_the_same_bytes_in_one_process_or_two(result):
    again, parallel, other = found(with_baselines=True), found(with_baselines=True, jobs=2), found(seed=2)
    assert result.to_json() == again.to_json() == parallel.to_json()
    assert result.draws.to_csv() == parallel.draws.to_csv()
    assert other.draws != result.draws


def test_a_stopped_study_goes_on_and_ends_in_the_same_bytes(result, tmp_path, monkeypatch):
    done = []

    def stopping(subject, job):
        if len(done) == 2:
            raise KeyboardInterrupt
        done.append(job)
        return genuine(subject, job)

    genuine = work.draws_of
    monkeypatch.setattr("privstats.contrib.sweep.experiment.draws_of", stopping)
    refused(KeyboardInterrupt, "", found, kept=tmp_path / "draws.jsonl", with_baselines=True)
    left = []
    monkeypatch.setattr(
        "privstats.contrib.sweep.experiment.draws_of", lambda *job: (left.append(job), genuine(*job))[1]
    )
    ticks = []
    resumed = found(kept=tmp_path / "draws.jsonl", with_baselines=True, tick=lambda: ticks.append(1))
    assert (resumed.to_json(), (len(left), len(ticks))) == (result.to_json(), (4, 6))
    found(kept=tmp_path / "draws.jsonl", seed=5)
    assert len(left) == 10  # draws of another seed are no draws of this one


def test_the_document_says_what_was_asked_on_what_and_by_what(result):
    document = json.loads(result.to_json())
    assert (document["plan_digest"], document["axes"]["alpha"]) == (PLAN.digest, [0.1, 10.0])
    assert (document["seed"], document["repeats"], document["metric"]) == (1, 3, "accuracy")
    assert document["sizes"] == {"train": 600, "test": 300, "columns": 4, "features": 4, "classes": 3}
    assert len(document["data_sha256"]) == 64
    assert set(document["versions"]) == {"privstats", "python", "numpy", "scipy", "scikit-learn"}
    assert (len(document["draws"]), len(document["points"])) == (len(result.draws), len(result.summary))
    more = study(PLAN, (TRAIN[0] + 1e-9, TRAIN[1]), TEST, HEADS, Axes(), repeats=2, with_baselines=False)
    assert more.data != result.data


def test_baselines_see_the_pooled_records_and_no_noise(result):
    assert set(result.baselines) == {"scikit-learn LDA, pooled", "logistic regression, pooled"}
    assert min(result.baselines.values()) > 0.9
    target = TRAIN[0] @ np.ones(4) / 12
    ridge = dataclasses.replace(PLAN, schema=ps.RidgeSchema(4, clip_norm=40.0, target_bound=4.0))
    head = {"Ridge": lambda: ps.heads.Ridge(fit_intercept=False, penalty=0.0)}
    regression = study(ridge, (TRAIN[0], target), (TRAIN[0], target), head, Axes(alpha=[0.5]), repeats=2)
    assert set(regression.baselines) == {"linear regression, pooled", "scikit-learn ridge, pooled"}
    assert (regression.metric, regression.sizes["targets"]) == ("R²", 1)
    assert regression.summary.where(model="none")["mean"][0] > 0.99


def test_a_head_that_some_statistics_cannot_feed_is_told_and_left_out_there():
    both = found(Axes(statistics=["NAB", "NAD"], epsilon=[5.0]))
    assert list(both.missing) == ["LDA from NAD"]
    assert "needs statistic B" in both.missing["LDA from NAD"]
    assert set(both.draws.where(statistics="NAD")["head"]) == {"NaiveBayes"}


@pytest.mark.parametrize(
    ("how", "error", "words"),
    [
        ({"heads": {}}, ps.DataError, "heads must map names to heads"),
        ({"jobs": 0}, ps.DataError, "jobs must be an integer of at least 1, got 0"),
        ({"repeats": 1}, ps.DataError, "repeats must be an integer of at least 2"),
        ({"axes": Axes(clip_norm=[-1.0])}, ps.SchemaError, "clip_norm must be a number between"),
        ({"axes": Axes(statistics=["AB"])}, ps.SchemaError, "must contain N and A"),
        ({"axes": Axes(dimension=[99])}, ps.SchemaError, "at most 4 features"),
        ({"axes": Axes(unit=["client"])}, ps.PlanError, "records_per_client"),
        ({"axes": Axes(model=["global"])}, ps.PlanError, "model must be one of"),
        ({"plan": dataclasses.replace(PLAN, cohort=ps.Cohort(5, 4, 99))}, ps.DataError, "600 records and .*=99"),
        ({"plan": "plan.toml"}, ps.DataError, "plan must be a Plan, got str"),
    ],
)
def test_what_makes_no_sense_is_refused_before_anything_is_drawn(how, error, words, monkeypatch):
    monkeypatch.setattr("privstats.contrib.sweep.experiment.draws_of", lambda *_: pytest.fail("drawn"))
    refused(error, words, found, **how)


def test_a_frame_is_read_by_column_by_value_and_by_others(result):
    assert result.draws.columns[:2] == ("model", "unit")
    assert len(result.draws.where(head="LDA", model="none")) == 2
    refused(ps.DataError, "there is no column 'accuracy'; the columns are model", lambda: result.draws["accuracy"])
    read = list(csv.DictReader(io.StringIO(result.draws.to_csv())))
    assert [float(row["score"]) for row in read] == result.draws["score"]
    assert {row["epsilon"] for row in read} == {"", "0.02", "0.3"}
    pandas = pytest.importorskip("pandas")
    assert pandas.DataFrame(result.summary.to_dict()).groupby("model")["mean"].mean()["central"] > 0.5
    assert Frame.of(("a", "b"), [{"a": math.nan, "b": 1}]).to_csv() == "a,b\n,1\n"


@pytest.mark.ci
@pytest.mark.slow
def test_pictures_are_the_same_bytes_and_of_three_kinds(result):
    pytest.importorskip("matplotlib", reason="the report extra is not installed")
    first, again = drawn(result), drawn(result)
    assert first == again
    starts = {"png": b"\x89PNG", "svg": b"<?xml", "pdf": b"%PDF"}
    assert all(first[kind].startswith(start) for kind, start in starts.items())


@pytest.mark.ci
@pytest.mark.slow
@pytest.mark.parametrize(
    "axes", [Axes(), Axes(dimension=[2, 3]), Axes(statistics=["NAB", "NAS"], epsilon=[1.0, 3.0], clients=[4, 5, 6, 7])]
)
def test_whatever_was_varied_can_be_drawn(axes):
    pytest.importorskip("matplotlib", reason="the report extra is not installed")
    assert drawn(found(axes, repeats=2))["png"].startswith(b"\x89PNG")
