"""A sweep draws the plan's own noise, and is worth no more than its data."""

import base64
import dataclasses
import importlib.util
import json
import math

import numpy as np
import pytest

import privstats as ps
from privstats.contrib.sweep import Axes, means, study, sweep
from tests import made

RNG = np.random.default_rng(3)
CENTRES = 3 * RNG.normal(size=(3, 4))
Y = RNG.integers(0, 3, 900)
X = CENTRES[Y] + RNG.normal(size=(900, 4))
TRAIN, TEST = (X[:600], Y[:600]), (X[600:], Y[600:])
PLAN = made.plan(ps.ClassSchema(3, 4, "NAB", clip_norm=8.0), ps.Cohort(5, 4, 1000), made.promise("distributed"))


def test_utility_falls_with_epsilon_and_never_beats_no_noise_by_much():
    result = sweep(PLAN, TRAIN, TEST, {"LDA": ps.heads.LDA}, [5.0, 0.01], repeats=4)
    assert result.epsilons == (math.inf, 5.0, 0.01)
    open_, weak, strong = (result.at("LDA", epsilon).mean for epsilon in result.epsilons)
    assert open_ == ps.heads.LDA().fit(*TRAIN).score(*TEST)
    assert open_ + 0.02 >= weak > strong


def test_the_same_seed_gives_the_same_sweep():
    first, again, other = (
        sweep(PLAN, TRAIN, TEST, {"LDA": ps.heads.LDA}, [0.05], repeats=2, seed=seed) for seed in (1, 1, 2)
    )
    assert first == again != other


def test_a_head_without_its_statistic_is_left_out_with_the_reason():
    plan = dataclasses.replace(PLAN, schema=ps.ClassSchema(3, 4, "NAD", clip_norm=8.0))
    result = sweep(plan, TRAIN, TEST, {"LDA": ps.heads.LDA, "NB": ps.heads.NaiveBayes}, [1.0], repeats=2)
    assert result.heads == ("NB",)
    assert "B" in result.missing["LDA"]


def test_classes_that_the_minimum_count_drops_and_heads_that_are_left_out_are_told(privstats, folder):
    plan = dataclasses.replace(PLAN, min_count=190)
    assert sweep(plan, TRAIN, TEST, {"LDA": ps.heads.LDA}, [0.1], repeats=3).dropped[0.1] > 0
    (folder / "plan.toml").write_text(plan.to_toml())
    words = ("--head", "lda", "--centred", "--epsilon", "0.1")
    said = privstats("sweep", "plan.toml", "data.npz", *words, cwd=folder).stdout.replace("\n", " ")
    assert "min_count=190 dropped" in said
    assert "excluded LDA, centred: centred rows have norm 1: give clip_norm=1.0" in said


def test_when_every_class_is_dropped_nothing_is_right():
    result = sweep(dataclasses.replace(PLAN, min_count=900), TRAIN, TEST, {"LDA": ps.heads.LDA}, [8.0], repeats=2)
    assert result.at("LDA", 8.0).mean == 0.0


def test_client_level_plans_are_swept_within_their_limit():
    privacy = ps.Privacy(
        model="central", unit="client", adjacency="add-remove", epsilon=1.0, delta=1e-5, max_records_per_client=120
    )
    plan = dataclasses.replace(PLAN, privacy=privacy)
    assert sweep(plan, TRAIN, TEST, {"LDA": ps.heads.LDA}, [50.0], repeats=2).at("LDA", 50.0).mean > 0.5


def test_an_interval_is_cut_to_the_scores_that_there_can_be():
    easy = 9.0 * np.eye(2)[np.arange(20) % 2]
    found = study(
        dataclasses.replace(PLAN, schema=ps.ClassSchema(2, 2, "NAB", 9.0)),
        (easy, np.arange(20) % 2),
        (easy[:4], np.arange(4) % 2),
        {"LDA": ps.heads.LDA},
        Axes(epsilon=(0.5,)),
        repeats=3,
        with_baselines=False,
    )
    noisy = list(found.summary)[-1]
    assert noisy["high"] > 1 > noisy["mean"], "the data are of the kind that the table must cut"
    (told,) = [cell for cell in means(found).columns[-4].cells if cell != "-"]
    assert float(told.partition(" to ")[2].rstrip("%")) == 100.0
    assert float(told.partition("%")[0]) >= 0.0


@pytest.fixture
def folder(tmp_path):
    (tmp_path / "plan.toml").write_text(PLAN.to_toml())
    np.savez(tmp_path / "data.npz", X_train=TRAIN[0], y_train=TRAIN[1], X_test=TEST[0], y_test=TEST[1])
    return tmp_path


@pytest.mark.ci
@pytest.mark.slow
def test_the_command_prints_a_table_and_writes_json_and_a_page(privstats, folder):
    pytest.importorskip("matplotlib", reason="the report extra is not installed")
    done = privstats(
        "sweep", "plan.toml", "data.npz", "--epsilon", "3", "--repeats", "2", "--out", "o", cwd=folder, code=0
    )
    assert "LDA" in done.stdout
    assert "excluded QDA" in done.stdout
    document = json.loads((folder / "o" / "sweep.json").read_text())
    assert {point["epsilon"] for point in document["points"]} == {None, 3.0}
    page, png = (folder / "o" / "report.html").read_text(), (folder / "o" / "sweep.png").read_bytes()
    assert base64.b64encode(png).decode() in page, "the page's picture is the figure's file"
    assert "noise, one record, add-remove" in page, "the trust model is in the caption"
    assert "released together" not in page
    names = {"sweep.json", "sweep.csv", "sweep.tex", "draws.csv", "sweep.png", "sweep.svg", "sweep.pdf", "report.html"}
    assert {path.name for path in (folder / "o").iterdir()} == names
    assert all(path.stat().st_mode & 0o044 for path in (folder / "o").iterdir())
    refused = privstats("sweep", "plan.toml", "data.npz", "--out", "o", cwd=folder, code=2)
    assert "holds a finished sweep" in refused.stderr


@pytest.mark.ci
@pytest.mark.slow
def test_the_command_varies_every_axis_and_goes_on_where_it_was_stopped(privstats, folder, monkeypatch):
    pytest.importorskip("matplotlib", reason="the report extra is not installed")
    words = ["sweep", "plan.toml", "data.npz", "--head", "lda", "--repeats", "2", "--epsilon", "3", "--no-baselines"]
    words += ["--model", "central", "--model", "local", "--alpha", "0.1", "--clients", "4", "--clip-norm", "6"]
    words += ["--dimension", "3", "--statistics", "NAB", "--unit", "record", "--unit", "client"]
    words += ["--records-per-client", "200"]
    assert privstats(*words, "--out", "whole", cwd=folder).returncode == 0

    def stop(*_):
        raise KeyboardInterrupt

    with monkeypatch.context() as patched:
        patched.setattr("privstats.contrib.sweep.running.drawn", stop)
        assert privstats(*words, "--out", "stopped", cwd=folder).returncode == 130
    assert (folder / "stopped" / "draws.jsonl").exists()
    done = privstats(*words, "--out", "stopped", cwd=folder, code=0)
    assert "95 % interval" in done.stdout
    assert "no report.html: a page has the axis epsilon alone, and model, unit varied too" in done.stdout
    for path in (folder / "whole").iterdir():
        assert path.read_bytes() == (folder / "stopped" / path.name).read_bytes(), path.name


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (("plan.toml", "nothing.npz"), "no such file"),
        (("plan.toml", "plan.toml"), "plan.toml holds one set of records; set the share to score on"),
        (("plan.toml", "half.npz"), "lacks X_test, y_test"),
        (("plan.toml", "data.npz", "--head", "SVM"), "--head SVM is unknown"),
        (("plan.toml", "data.npz", "--head", "load"), "--head load is unknown"),
        (
            ("plan.toml", "data.npz", "--baseline", "sgd"),
            "baseline must be one of dp-gd, dp-sgd, ensemble, fedavg, fed",
        ),
        (("plan.toml", "data.npz", "--head", "QDA", "--repeats", "2"), "no head could be scored"),
        (("data.npz", "data.npz"), "not UTF-8"),
    ],
)
def test_the_command_refuses_bad_input_in_one_sentence(privstats, folder, words, message):
    np.savez(folder / "half.npz", X_train=TRAIN[0], y_train=TRAIN[1])
    done = privstats("sweep", *words, cwd=folder, code=2)
    assert message in done.stderr.replace("\n", " ")
    assert "Traceback" not in done.stderr


def test_everything_that_is_wrong_is_said_at_once(privstats, folder):
    (folder / "o").mkdir()
    (folder / "o" / "sweep.json").write_text("{}")
    words = ("--head", "SVM", "--baseline", "sgd", "--epsilon", "-1", "--repeats", "1", "--out", "o")
    told = privstats("sweep", "plan.toml", "nothing.npz", *words, cwd=folder, code=2).stderr
    for part in ("--head SVM", "baseline must be", "--repeats", "no such file", "holds a finished sweep"):
        assert part in told
    told = privstats("sweep", "plan.toml", "data.npz", "--epsilon", "-1", "--head", "SVM", cwd=folder, code=2).stderr
    assert "epsilon" in told
    assert "--head SVM" in told


def test_one_archive_states_its_own_features_and_classes_as_a_folder_of_them_does(privstats, folder):
    rng, y = np.random.default_rng(0), np.arange(400) % 4
    X = rng.normal(size=(400, 9)) + 3 * np.eye(9)[y]
    (folder / "sets").mkdir()
    np.savez(folder / "sets" / "wide.npz", X_train=X[:200], y_train=y[:200], X_test=X[200:], y_test=y[200:])
    words = ("--head", "lda", "--epsilon", "8", "--repeats", "2", "--no-baselines")
    alone = privstats("sweep", "plan.toml", "sets/wide.npz", *words, cwd=folder, code=0).stdout
    together = privstats("sweep", "plan.toml", "sets", *words, cwd=folder, code=0).stdout
    assert alone in together


def test_a_missing_opacus_is_one_sentence_with_the_extra(privstats, folder, monkeypatch):
    genuine = importlib.util.find_spec
    monkeypatch.setattr(
        "privstats.optional_dependencies.importlib.util.find_spec",
        lambda name, *rest: None if name in ("torch", "opacus") else genuine(name, *rest),
    )
    done = privstats("sweep", "plan.toml", "data.npz", "--baseline", "dp-sgd", cwd=folder, code=2)
    said = " ".join(done.stderr.split())
    assert (
        "DP-SGD and DP-GD beside a sweep needs torch and opacus; install with: pip install 'privstats[torch]'" in said
    )
    assert "Traceback" not in said


@pytest.mark.ci
@pytest.mark.slow
def test_one_command_writes_a_papers_table_with_a_rival(privstats, folder):
    pytest.importorskip("matplotlib", reason="the report extra is not installed")
    words = ("--head", "lda", "--alpha", "0.1", "--epsilon", "3", "--baseline", "ensemble", "--out", "paper")
    done = privstats("sweep", "plan.toml", "data.npz", *words, cwd=folder, code=0)
    assert "it has no privacy: the server reads each party's weights" in " ".join(done.stdout.split())
    table = (folder / "paper" / "sweep.tex").read_text()
    assert "interval over 5 seeds" in table
    assert "one-shot ensemble & $" in table
    assert json.loads((folder / "paper" / "sweep.json").read_text())["without_privacy"] == ["one-shot ensemble"]
    page = (folder / "paper" / "report.html").read_text()
    assert "one-shot ensemble" in page
    assert "it has no privacy" in page
