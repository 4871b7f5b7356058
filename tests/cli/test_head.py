"""`privstats head`: a model's file says what it may be shown to, and is held against plan, release and signature."""

import json
import shutil

import numpy as np
import pytest

import privstats as ps
from privstats.contrib.personal import Personal

X = np.eye(3)[np.arange(60) % 2] + 0.05 * np.random.default_rng(0).normal(size=(60, 3))
Y = np.arange(60) % 2
TERMS = {"epsilon": 2.0, "delta": 1e-5, "adjacency": "add-remove", "clip_norm": 2.0, "classes": (0, 1)}
MAKER, OTHER = ps.secagg.Identity(b"\1" * 32), ps.secagg.Identity(b"\2" * 32)


@pytest.fixture(scope="module")
def files(tmp_path_factory):
    """A private head, its plan and release, and an exact one."""
    place = tmp_path_factory.mktemp("heads")
    private = ps.heads.LDA().fit_private(X, Y, ledger="uncharged", **TERMS)
    private.save(place / "private", MAKER)
    private.release_.save(place / "release")
    (place / "plan.toml").write_text(private.release_.plan.to_toml())
    exact = ps.heads.LDA().fit(X, Y)
    exact.save(place / "exact")
    Personal(private).fit(X, Y).save(place / "own")
    exact.provenance_ = ps.heads.Provenance()
    exact.save(place / "unknown")
    return place


@pytest.fixture
def run(privstats, tmp_path, files):
    """A command in a folder of its own with all of these files; it ends with ``code``."""
    shutil.copytree(files, tmp_path, dirs_exist_ok=True)

    def run(*words: str, code: int = 0):
        return privstats("head", *words, cwd=tmp_path, code=code)

    return run


def test_a_private_head_shows_its_promise(run, tmp_path):
    shown = json.loads(run("show", "private", "--json").stdout)
    release = ps.Release.load(tmp_path / "release")
    promise = {name: shown[name] for name in ("exact", "epsilon", "delta", "adjacency", "unit", "model")}
    assert promise == {"exact": False, "model": "central", "unit": "record"} | {
        name: TERMS[name] for name in ("epsilon", "delta", "adjacency")
    }
    assert (shown["head"], shown["plan"], shown["release"]) == ("LDA", release.plan.digest, release.digest)
    assert (shown["classes"], shown["features"], shown["signed"], shown["format"]) == ([0, 1], 3, True, "3")
    words = run("show", "private").stdout
    assert "epsilon 2 at delta 1e-05: central noise, one record, add-remove, while the server adds its noise" in words
    assert shown["condition"] == release.plan.condition
    assert "shrinkage" in words


@pytest.mark.parametrize(
    ("file", "exact", "words"),
    [
        ("exact", True, "exact: no promise"),
        ("own", True, "exact: no promise"),
        ("unknown", None, "unknown: the file does not state"),
    ],
)
def test_what_no_promise_covers_says_so_and_verifies_as_a_no(run, file, exact, words):
    shown = json.loads(run("show", file, "--json").stdout)
    assert (shown["exact"], shown["epsilon"], shown["unit"]) == (exact, None, None)
    assert shown["promise"].startswith(words)
    assert f"NO: {words}" in run("verify", file, code=1).stdout


def test_a_head_is_held_against_its_plan_its_release_and_its_maker(run, tmp_path):
    words = ("--plan", "plan.toml", "--release", "release", "--signed-by", MAKER.public.hex())
    found = json.loads(run("verify", "private", *words, "--json").stdout)
    assert not found["violated"]
    assert found["checks"] == {
        "checksum": "good",
        "promise": str(ps.heads.load(tmp_path / "private").provenance_),
        "plan": "good",
        "release": "good: fitted again, it scores the same",
        "signature": "good",
    }
    (tmp_path / "maker.pub").write_text(MAKER.public_pem)
    assert "good" in run("verify", "private", "--signed-by", "maker.pub").stdout
    assert "not checked: pass --signed-by; the file has a signature" in run("verify", "private").stdout


@pytest.mark.filterwarnings("ignore::privstats.AssumedPublicWarning")
def test_a_head_whose_classes_were_read_off_the_records_says_so(run, tmp_path):
    head = ps.heads.LDA().fit_private(X, Y, ledger="uncharged", **TERMS | {"classes": None})
    head.save(tmp_path / "assumed")
    head.release_.save(tmp_path / "its-release")
    told = run("verify", "assumed", "--release", "its-release").stdout
    assert "The promise does not cover what was read off the records" in told
    assert "one record can show: the list of classes" in told
    assert "good: fitted again" in told
    assert "The promise does not cover" not in run("verify", "private").stdout
    assert json.loads(run("show", "assumed", "--json").stdout)["assumed_public"] == ["classes"]


def test_the_promise_of_a_record_in_several_rows_is_held_against_its_release(run, tmp_path):
    private = ps.heads.Private(ps.heads.LDA(), ledger="uncharged", multiplicity=3, **TERMS).fit(X, Y)
    private.save(tmp_path / "repeated")
    private.head_.release_.save(tmp_path / "of-rows")
    told = run("verify", "repeated", "--release", "of-rows").stdout
    assert "one record in at most 3 rows, add-remove" in told
    assert "good: fitted again" in told
    assert json.loads(run("show", "repeated", "--json").stdout)["multiplicity"] == 3


def test_what_is_of_another_plan_release_or_maker_is_exit_code_1(run, tmp_path):
    assert "is not signed by the key" in run("verify", "private", "--signed-by", OTHER.public.hex(), code=1).stdout
    again = ps.heads.LDA().fit_private(X, Y, ledger="uncharged", **TERMS | {"epsilon": 1.0})
    again.release_.save(tmp_path / "another")
    (tmp_path / "another.toml").write_text(again.release_.plan.to_toml())
    assert "NO: it comes from the plan" in run("verify", "private", "--plan", "another.toml", code=1).stdout
    assert "these state epsilon 1" in run("verify", "private", "--release", "another", code=1).stdout
    assert "NO: the file names no plan" in run("verify", "exact", "--plan", "plan.toml", code=1).stdout


def test_attack_an_exact_head_under_the_name_of_a_release_is_found(run, tmp_path):
    """Somebody writes a release's promise into the file of an exact head: fitted again, it scores differently."""
    exact, private = ps.heads.load(tmp_path / "exact"), ps.heads.load(tmp_path / "private")
    exact.provenance_, exact.preprocessing_ = private.provenance_, private.preprocessing_
    exact.save(tmp_path / "forged")
    assert "epsilon 2" in run("verify", "forged").stdout  # the file alone cannot tell
    assert "NO: fitted again, it scores differently" in run("verify", "forged", "--release", "release", code=1).stdout


def test_the_head_of_a_course_is_fitted_again_from_all_its_releases(run, tmp_path):
    head = ps.heads.RefinedSoftmax(rounds=2).fit_private(
        X, Y, ledger="uncharged", expected_records=60, **TERMS | {"clip_norm": 1.0}
    )
    head.save(tmp_path / "course")
    words = []
    for place, release in enumerate(head.releases_):
        release.save(tmp_path / f"release-{place}")
        words += ["--release", f"release-{place}"]
    assert "good: fitted again" in run("verify", "course", *words).stdout
    assert "NO: the file states" in run("verify", "course", *words[:2], code=1).stdout
    shown = json.loads(run("show", "course", "--json").stdout)
    assert (shown["course"], len(shown["releases"])) == (head.provenance_.course, 3)


def test_a_file_that_is_no_head_is_one_sentence(run):
    assert "is not a privstats head" in run("show", "release", code=2).stderr
    assert "cannot read nowhere" in run("verify", "nowhere", code=2).stderr
    assert "plan.toml" in run("show", "plan.toml", code=2).stderr
