"""``privstats score``: own files exactly, all parties by a plan, and the table of its release."""

import json

import numpy as np
import pytest
from sklearn.metrics import roc_auc_score

import privstats as ps
from privstats.intake.record_files import of_party
from privstats.intake.split_notes import note_split
from privstats.moments import RecordFile

PROMISE = ["--model", "central", "--unit", "record", "--adjacency", "add-remove", "--epsilon", "2", "--delta", "1e-6"]
COLUMNS = ("age", "dose")
IN_THREE = ("--target", "ill", "--label", "no", "--label", "yes", "--label", "unknown")


@pytest.fixture
def run(privstats, tmp_path):
    """A command in a folder with two hospitals' files and two heads; it ends with ``code``."""
    rng = np.random.default_rng(0)
    schema = ps.ClassSchema(2, 2, "NAB", 4.0, class_names=("no", "yes"), feature_names=COLUMNS)
    for name in ("north", "south"):
        y = rng.random(400) < 0.4
        X = rng.normal(size=(400, 2)) + 1.5 * y[:, None]
        rows = [f"{a},{b},{'yes' if ill else 'no'}" for (a, b), ill in zip(X, y, strict=True)]
        (tmp_path / f"{name}.csv").write_text("\n".join(["age,dose,ill", *rows]))
    files = [RecordFile(tmp_path / f"{name}.csv", "ill", split=0.5) for name in ("north", "south")]
    parts = [of_party(file, place).parts(COLUMNS) for place, file in enumerate(files)]
    plan = ps.Plan(schema=schema, cohort=ps.Cohort(2, 2, 900), privacy=ps.NoPrivacy())
    head = ps.heads.LDA().fit_release(ps.simulate(plan, [(seen.X, seen.y) for seen, _ in parts]))
    head.save(tmp_path / "ill.head")
    ps.heads.Ridge().fit(np.eye(3), [1.0, 2.0, 3.0]).save(tmp_path / "line.head")
    ps.heads.LDA().fit(np.eye(3, 2), [0, 1, 2]).save(tmp_path / "three.head")

    def run(*words: str, code: int = 0):
        return privstats(*words, cwd=tmp_path, code=code)

    run.head, run.kept, run.folder = head, [kept for _, kept in parts], tmp_path
    return run


def test_own_files_are_scored_exactly_and_said_to_stay(run):
    said = run("score", "ill.head", "north.csv", "south.csv", "--target", "ill", "--split", "0.5", "--json")
    facts = json.loads(said.stdout)
    X, y = (np.concatenate([getattr(kept, name) for kept in run.kept]) for name in "Xy")
    measured = {row["metric"]: row["estimate"] for row in facts["rows"] if not row["class"]}
    assert (facts["records"], measured["accuracy"]) == (len(y), pytest.approx(run.head.score(X, y)))
    shown = run("score", "ill.head", "north.csv", "--target", "ill", "--figure", "own.png")
    assert (run.folder / "own.png").read_bytes().startswith(b"\x89PNG")
    assert "balanced accuracy" in shown.stdout
    assert "do not share them" in shown.stdout
    assert "the head must not be fitted on these records" in shown.stdout
    assert "Score of a head on your own records" in shown.stdout
    for word in ("release", "clients", "differential privacy"):  # there were none
        assert word not in shown.stdout


def test_a_plan_over_all_parties_is_written_checked_run_and_read(run):
    done = run("score", "ill.head", "--plan", "score.toml", "--clients", "2", "--max-records", "900", *PROMISE)
    assert "no promise covers it" in done.stdout
    assert "--kept-out" in done.stdout
    assert "who reads what: T score" in run("plan", "check", "score.toml").stdout
    assert "score.certificate.json" in run("plan", "certify", "score.toml").stdout
    plan = ps.Plan.read(run.folder / "score.toml")
    assert plan.key_agreement == "mlkem768-x25519"
    ps.simulate(plan, [(kept.X, kept.y) for kept in run.kept]).save(run.folder / "score.release")
    facts = json.loads(run("table", "score.release", "--format", "json").stdout)
    assert facts["reader"] == "score"
    assert {row["metric"] for row in facts["rows"]} >= {"accuracy", "AUC", "recall", "calibration error"}
    for form in ("text", "csv", "latex", "html", "markdown"):
        assert "balanced accuracy" in run("table", "score.release", "--format", form).stdout
    assert plan.digest in run("table", "score.release", "--methods").stdout
    run("table", "score.release", "--figure", "score.svg")
    assert "<svg" in (run.folder / "score.svg").read_text()
    assert (
        "exists"
        in run(
            "score", "ill.head", "--plan", "score.toml", "--clients", "2", "--max-records", "9", *PROMISE, code=2
        ).stderr
    )


def test_the_seed_of_a_split_is_held_by_the_note_beside_the_file(run):
    made = run.head.provenance_.plan
    assert note_split(RecordFile(run.folder / "north.csv", "ill", split=0.5), made, "0" * 64, again=False)
    words = ("score", "ill.head", "north.csv", "--target", "ill")
    assert "recall no" in run(*words, "--split", "0.5").stdout
    for other in (("--split", "0.5", "--seed", "1"), ("--split", "0.6"), ()):
        assert "used --split 0.5 --seed 0" in run(*words, *other, code=2).stderr.replace("\n", " ")
    south = RecordFile(run.folder / "south.csv", "ill", split=0.5, seed=1_000_000_000)
    records = {len(south.parts()[1].y)}
    alone = ("score", "ill.head", "south.csv", "--target", "ill", "--split", "0.5")
    assert "no note next to south.csv shows the split of the head's sums" in run(*alone).stdout.replace("\n", " ")
    assert note_split(south, made, "0" * 64, again=False)
    for more in ((), ("--seed", "1000000000")):
        noted = run(*alone, *more)
        assert "no note" not in noted.stdout
        records.add(json.loads(run(*alone, *more, "--json").stdout)["records"])
    assert len(records) == 1
    swapped = run("score", "ill.head", "south.csv", "north.csv", "--target", "ill", "--split", "0.5", "--json")
    assert json.loads(swapped.stdout)["records"] == sum(len(kept.y) for kept in run.kept)


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("ill.head",), "name files of your own records, or pass --plan"),
        (("ill.head", "north.csv", "--target", "ill", "--plan", "score.toml"), "or pass --plan SCORE.TOML"),
        (("ill.head", "--plan", "score.toml", "--epsilon", "1"), "needs --clients, --max-records, --model"),
        (("ill.head", "north.csv"), "name the column to predict with --target"),
        (("ill.head", "--plan", "score.toml", "--figure", "score.svg"), "privstats table RELEASE --figure"),
        (("ill.head", "north.csv", "--target", "ill", "--figure", "score.gif"), "a figure is saved as"),
        (("line.head", "north.csv", "--target", "ill"), "only a classifier has a score"),
        (("ill.head", "north.csv", "--target", "ill", "--bins", "7", "--equal-bins"), "even number"),
        (("ill.head", "north.csv", "--target", "ill", "--threshold", "1.5"), "threshold must be above 0 and below 1"),
        (("ill.head", "north.csv", "--target", "ill", "--threshold", "rate"), "or prevalence, got 'rate'"),
        (("three.head", "north.csv", "--target", "ill", "--threshold", "prevalence"), "a threshold is one of two"),
        (("ill.head", "north.csv", *IN_THREE, "--threshold", "prevalence"), "and the records have 3: leave it out"),
        (("ill.head", "--plan", "score.toml", "--threshold", "0.5"), "--threshold is for your own files"),
        (("ill.head", "north.csv", "--target", "ill", "--label", "no", "--label", "x"), "not among the labels"),
        (("north.csv", "south.csv"), "is not a privstats head"),
    ],
)
def test_what_is_wrong_is_said_in_a_sentence(run, words, said):
    assert said in run("score", *words, code=2).stderr.replace("\n", " ")


def test_bins_follow_the_head_without_an_option_and_the_width_is_said_before_anything_is_spent(run):
    """By default a plan had 20 equal bins, and said AUC .575 [.167, .959] for .696."""
    head, shards = run.head, [(kept.X, kept.y) for kept in run.kept]
    schema = ps.ClassSchema(2, 2, "NAB", 4.0, class_names=("no", "yes"), feature_names=COLUMNS)
    privacy = ps.Privacy(model="central", unit="record", adjacency="add-remove", epsilon=3.0, delta=1e-6)
    release = ps.simulate(ps.Plan(schema=schema, cohort=ps.Cohort(2, 2, 900), privacy=privacy), shards)
    release.save(run.folder / "made.release")
    type(head)().fit_release(release).save(run.folder / "noisy.head")
    terms = ["--clients", "2", "--max-records", "900", *PROMISE]
    said = run("score", "noisy.head", "--plan", "score.toml", *terms).stdout
    assert "if all 900 records are scored, the AUC's interval will be about" in said
    assert "of equal width" not in said
    cuts = ps.Plan.read(run.folder / "score.toml").schema.cuts
    assert 0.5 in cuts
    checked = " ".join(run("plan", "check", "score.toml").stdout.split())
    assert "no forecast of the AUC" in checked
    said = run("score", "noisy.head", "--plan", "score.toml", *terms, "--equal-bins", "--force").stdout
    assert "its bins are of equal width, as was asked for" in said
    assert ps.Plan.read(run.folder / "score.toml").schema.cuts is None
    (run.folder / "host").mkdir()
    (run.folder / "made.release").rename(run.folder / "host" / "0.release")
    run("score", "noisy.head", "--plan", "score.toml", *terms, "--release", "host", "--force")
    assert ps.Plan.read(run.folder / "score.toml").schema.cuts == cuts
    (run.folder / "host" / "0.release").rename(run.folder / "made.release")
    (run.folder / "empty").mkdir()
    empty = run("score", "noisy.head", "--plan", "score.toml", *terms, "--release", "empty", code=2).stderr
    assert "empty is no release and holds none" in " ".join(empty.split())
    wrong = run("score", "ill.head", "--plan", "other.toml", *terms, "--release", "made.release", code=2).stderr
    assert "releases must be those that the head was made from" in " ".join(wrong.split())
    exact = type(head)().fit(shards[0][0], shards[0][1])
    exact.save(run.folder / "exact.head")
    said = run("score", "exact.head", "--plan", "exact.toml", *terms).stdout
    assert "of equal width, because the head's file does not store their distribution" in " ".join(said.split())


def test_a_plan_per_person_is_written_by_the_options_that_it_asks_for(run):
    terms = ["--clients", "2", "--max-records", "900", *PROMISE, "--unit", "person"]
    lacking = run("score", "ill.head", "--plan", "score.toml", *terms, code=2).stderr
    assert "--unit person needs --person-clip" in " ".join(lacking.split())
    run("score", "ill.head", "--plan", "score.toml", *terms, "--person-clip", "average")
    assert ps.Plan.read(run.folder / "score.toml").privacy.averaged
    of_rows = ["--person-clip", "1", "--max-records-per-person", "5", "--force"]
    refused = run("score", "ill.head", "--plan", "score.toml", *terms, *of_rows, code=2).stderr
    assert 'give person_clip="average"' in " ".join(refused.split())  # before any epsilon is spent without a score


def test_the_area_on_own_files_has_no_bins_and_records_without_an_outcome_are_left_out(run):
    """Twenty equal bins said AUC .56 [.12, .96] of a rare outcome, and a missing outcome refused the file."""
    path = run.folder / "north.csv"
    lines = path.read_text().splitlines()
    path.write_text("\n".join([*lines, "0.1,0.2,"]) + "\n")
    done = run("score", "ill.head", "north.csv", "--target", "ill", "--json")
    assert "north.csv: 1 of the records cannot be read" in " ".join(done.stderr.split())
    facts = json.loads(done.stdout)
    values = np.array([[float(a), float(b)] for a, b, _ in (line.split(",") for line in lines[1:])])
    ill = np.array([line.endswith("yes") for line in lines[1:]])
    (row,) = [row for row in facts["rows"] if row["metric"] == "AUC"]
    assert facts["records"] == 400
    assert row["estimate"] == pytest.approx(roc_auc_score(ill, run.head.predict_proba(values)[:, 1]))
    assert 0.03 < row["conf_high"] - row["conf_low"] < 0.1


def test_own_files_are_exact_at_the_thresholds_asked_for_and_count_a_patients_rows_together(run):
    """Thresholds were the nearest of 20 edges, and the rows of a patient were independent."""
    lines = (run.folder / "north.csv").read_text().splitlines()
    twice = [f"{line},p{place}" for place, line in enumerate(lines[1:]) for _ in range(2)]
    (run.folder / "twice.csv").write_text("\n".join([lines[0] + ",patient", *twice]))
    asked = ("--target", "ill", "--threshold", "0.123", "--threshold", "0.61", "--json")
    once, rows, persons = (
        {row["metric"]: row for row in json.loads(run("score", "ill.head", *words, *asked).stdout)["rows"]}
        for words in (("north.csv",), ("twice.csv",), ("twice.csv", "--persons", "patient"))
    )
    values = np.array([[float(a), float(b)] for a, b, _ in (line.split(",") for line in lines[1:])])
    ill, shares = np.array([line.endswith("yes") for line in lines[1:]]), run.head.predict_proba(values)[:, 1]
    for cut in (0.123, 0.61):
        assert once[f"sensitivity from {cut} on"]["estimate"] == pytest.approx((shares[ill] >= cut).mean())
        assert once[f"specificity from {cut} on"]["estimate"] == pytest.approx((shares[~ill] < cut).mean())
    for name, row in once.items():
        assert rows[name]["estimate"] == pytest.approx(row["estimate"])
        for end in ("conf_low", "conf_high"):  # those of the rows alone claim twice the records
            assert persons[name][end] == pytest.approx(row[end], abs=2e-3), name
        if row["conf_low"] > 0:  # else both intervals end there
            assert rows[name]["conf_high"] - rows[name]["conf_low"] < 0.8 * (row["conf_high"] - row["conf_low"])
    assert (
        "are of 400 patients" in run("score", "ill.head", "twice.csv", "--target", "ill", "--persons", "patient").stdout
    )


def test_a_score_leads_with_the_order_and_flags_from_the_heads_prevalence_on(run):
    """A score of an outcome of 7 % led with accuracy .898 and recall .027, and `--threshold prevalence` was refused."""
    lines = (run.folder / "north.csv").read_text().splitlines()
    values = np.array([[float(a), float(b)] for a, b, _ in (line.split(",") for line in lines[1:])])
    ill, shares = np.array([line.endswith("yes") for line in lines[1:]]), run.head.predict_proba(values)[:, 1]
    own = float(run.head.prevalence_[1])
    assert own != pytest.approx(ill.mean(), abs=1e-4)  # the threshold is the head's, not the scored records'
    words = ("score", "ill.head", "north.csv", "--target", "ill", "--json")
    asked, unasked = (json.loads(run(*words, *more).stdout)["rows"] for more in (("--threshold", "prevalence"), ()))
    assert asked == unasked
    names = [row["metric"] for row in asked]
    assert names[:3] == ["AUC", f"sensitivity from {own:.3g} on", f"specificity from {own:.3g} on"]
    assert names.index("accuracy") > names.index("recall")
    assert asked[1]["estimate"] == pytest.approx((shares[ill] >= own).mean())
    assert asked[2]["estimate"] == pytest.approx((shares[~ill] < own).mean())
    flagged = run.head.predict(values, threshold="prevalence") == "yes"
    assert asked[1]["estimate"] == pytest.approx(flagged[ill].mean())
    turned = json.loads(run(*words, "--label", "yes", "--label", "no").stdout)["rows"]
    assert turned[1]["metric"] == f"sensitivity from {1 - own:.3g} on"
    assert turned[1]["estimate"] == pytest.approx((1 - shares[~ill] >= 1 - own).mean())
