"""``course rehearse``: from two files to the table of a course, in one process."""

import csv
import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import privstats as ps
from privstats.moments import RecordFile, exact_moments
from privstats.records.from_file import records_in
from tests.hazard import worlds as hazards
from tests.made import promise

COHORT = ps.Cohort(2, 2, 2_000)
PEOPLE = hazards.world(600)


def written(folder: Path, columns: dict[str, Any]) -> list[str]:
    """The columns as the files of two parties, with one column that no plan names."""
    for party in range(2):
        table = {"patient": np.arange(300), **{name: column[party::2] for name, column in columns.items()}}
        rows = np.column_stack(list(table.values()))
        np.savetxt(folder / f"{party}.csv", rows, "%.10g", ",", header=",".join(table), comments="")
    return ["0.csv", "1.csv"]


def test_a_trial_goes_from_two_files_to_its_table(privstats: Any, tmp_path: Path) -> None:
    rng, arm = np.random.default_rng(0), np.arange(600) // 2 % 2
    files = written(tmp_path, {"age": rng.uniform(20, 90, 600), "arm": arm, "well": (rng.random(600) < 0.3) * 1})
    schema = ps.EffectSchema.of({"age": (20, 90)}, treatment="arm", outcome=(0, 1), probability=0.5)
    ps.course.write(tmp_path / "trial.toml", ps.Effect.start(schema, COHORT, promise(epsilon=8.0)))
    words = ("course", "rehearse", "trial.toml", *files, "--target", "well", "--out", "out")
    assert privstats(*words, cwd=tmp_path, code=0).stdout.endswith(" table out/0.release out/1.release\n")
    read = privstats("table", "out/0.release", "out/1.release", cwd=tmp_path)
    assert "Effect of a randomised treatment" in read.stdout
    wrong = " ".join(privstats("table", "out/1.release", "out/0.release", cwd=tmp_path, code=2).stderr.split())
    assert "release 1 is not the next of its course" in wrong
    assert "in order" in wrong
    verify = ("release", "verify", "out/1.release", "--plan", "trial.plan.toml")
    stated = " ".join(privstats(*verify, cwd=tmp_path, code=1).stdout.split())
    assert "is verified against the course's file, with --after and all earlier releases, in order" in stated
    twice = privstats(
        "course", "rehearse", "trial.toml", "0.csv", "./0.csv", *words[5:7], "--out", "twice", cwd=tmp_path
    )
    assert "0.csv hold the same bytes: records that are counted twice" in " ".join(twice.stderr.split())
    assert "pass --force" in privstats(*words, cwd=tmp_path).stderr
    assert "name the column to predict with --target" in privstats(*words[:5], "--out", "other", cwd=tmp_path).stderr
    assert not (tmp_path / "other").exists()


def test_values_outside_a_declared_range_are_counted_before_a_run(privstats: Any, tmp_path: Path) -> None:
    """They were clipped without a word, but for ``flower records``."""
    lines = [f"{(-9, 140, 30, 60, 70, 50)[place % 6]},{place // 2 % 2},{place % 3 % 2}" for place in range(600)]
    for party in range(2):
        (tmp_path / f"{party}.csv").write_text("\n".join(["age,arm,well", *lines[party::2]]) + "\n")
    schema = ps.EffectSchema.of({"age": (20, 90)}, treatment="arm", outcome=(0, 1), probability=0.5)
    ps.course.write(tmp_path / "trial.toml", ps.Effect.start(schema, COHORT, promise(epsilon=8.0)))
    words = ("course", "rehearse", "trial.toml", "0.csv", "1.csv", "--target", "well", "--out", "out")
    said = " ".join(privstats(*words, cwd=tmp_path, code=0).stderr.split())
    for party, code in (("0", "-9"), ("1", "140")):
        assert (
            f"warning: {party}.csv: 100 of 300 values of age lie outside its declared range 20 to 90, most often "
            f"{code} (100), and are clipped as measurements"
        ) in said
    for plan in ("trial.toml", "trial.plan.toml"):
        looked = " ".join(privstats("look", "0.csv", "--plan", plan, cwd=tmp_path, code=0).stdout.split())
        assert looked.startswith("300 records of 0.csv")
        assert "100 of 300 values of age lie outside its declared range 20 to 90, most often -9 (100)" in looked


def test_several_outcomes_and_texts_come_from_one_file(privstats: Any, tmp_path: Path) -> None:
    """By the names in the plan, whatever order the file has; a word in one record is told by its column alone."""
    rng, arm = np.random.default_rng(0), np.array(["placebo", "drug"])[np.arange(600) // 2 % 2]
    goals = {name: np.array(["no", "yes"])[(rng.random(600) < 0.3) * 1] for name in ("well", "fell")}
    lines = [
        ",".join(map(str, line)) for line in zip(*goals.values(), arm, rng.uniform(20, 90, 600).round(1), strict=True)
    ]
    lines[4] = "yes,no,Private,30"
    for party in range(2):
        (tmp_path / f"{party}.csv").write_text("\n".join(["well,fell,arm,age", *lines[party::2]]) + "\n")
    answers = "--task effect --ranges age=20:90 --treatment arm=placebo/drug --outcome fell=no/yes,well=no/yes"
    terms = "--probability 0.5 --clients 2 --vanish 0 --colluders 0 --max-records 2000 --model central --unit record"
    rest = "--adjacency add-remove --epsilon 8 --delta 1e-6 --subgroups age=20:55:90"
    for words in (
        f"plan init plan.toml --yes {answers} {terms} {rest}",
        "course init trial.toml --plan plan.toml",
        "course rehearse trial.toml 0.csv 1.csv --out out",
    ):
        done = privstats(*words.split(), cwd=tmp_path, code=0)
    assert "warning: 0.csv: 1 of the records cannot be read" in done.stderr
    assert "'arm': 1 hold none of the values that the plan declares" in done.stderr
    assert "Private" not in done.stderr
    read = privstats("table", "out/0.release", "out/1.release", "--format", "csv", cwd=tmp_path)
    rows = list(csv.DictReader(read.stdout.splitlines()))
    groups = ("", "age: under 55", "age: 55 or more")
    assert [(row["outcome"], row["test"]) for row in rows[6:]] == [("fell", "interaction"), ("well", "interaction")]
    assert [(row["outcome"], row["subgroup"]) for row in rows[:6]] == [
        (each, of) for each in ("fell", "well") for of in groups
    ]
    refused = privstats(*words.split(), "--target", "well", "--force", cwd=tmp_path, code=2)
    assert "omit --target: the plan names its outcomes itself, fell, well" in refused.stderr


def test_patients_go_from_two_files_to_a_head(privstats: Any, tmp_path: Path) -> None:
    rng, ill = np.random.default_rng(0), np.arange(600) // 2 % 2
    files = written(tmp_path, {"age": rng.normal(4 * ill, 1), "dose": rng.normal(0, 1, 600), "ill": ill})
    for name in files:  # of each patient three rows
        text = (tmp_path / name).read_text().splitlines()
        lines = [f"p{int(line.partition(',')[0]) // 3},{line.partition(',')[2]}" for line in text[1:]]
        (tmp_path / name).write_text("\n".join([text[0], *lines]) + "\n")
    centre = (ps.transforms.Centre((2.0, 0.0)), ps.transforms.UnitNorm())
    schema = ps.ClassSchema(2, 2, "NAB", 1.0, feature_names=("age", "dose"), transform=centre)
    private = promise(unit="person", max_records_per_person=3, person_clip=2.0, epsilon=20.0)
    plan = ps.Plan(schema=schema, cohort=COHORT, privacy=private)
    ps.course.write(tmp_path / "study.toml", ps.Rounds.within(plan, 2, expected_records=600))
    words = ("course", "rehearse", "study.toml", *files, "--target", "ill", "--out", "out")
    assert "name the id column with --persons" in privstats(*words, cwd=tmp_path).stderr
    privstats(*words, "--persons", "patient", cwd=tmp_path, code=0)
    releases = [ps.Release.load(tmp_path / "out" / f"{place}.release") for place in range(3)]
    head = ps.heads.RefinedSoftmax().fit_releases(releases)
    assert head.score(np.column_stack([rng.normal(4 * ill, 1), rng.normal(0, 1, 600)]), ill) > 0.9
    assert releases[0].moments.N.sum() < 500  # three rows of one patient weigh two
    ps.course.write(tmp_path / "rows.toml", ps.Rounds.within(replace(plan, privacy=promise()), 2))
    refused = privstats(
        "course", "rehearse", "rows.toml", *files, "--out", "other", "--persons", "patient", cwd=tmp_path
    )
    assert "the promise is not per person" in refused.stderr


def test_a_split_keeps_records_out_of_every_sum(privstats: Any, tmp_path: Path) -> None:
    """They are those that the printed command scores: all files in their order, each with coins of its own."""
    rng, ill = np.random.default_rng(0), np.arange(600) // 2 % 2
    files = written(tmp_path, {"age": rng.normal(4 * ill, 1), "dose": rng.normal(0, 1, 600), "ill": ill})
    names, maps = ("age", "dose"), (ps.transforms.Centre((2.0, 0.0)), ps.transforms.UnitNorm())
    schema = ps.ClassSchema(2, 2, "NAB", 1.0, feature_names=names, transform=maps)
    plan = ps.Plan(schema=schema, cohort=COHORT, privacy=promise(epsilon=20.0))
    ps.course.write(tmp_path / "study.toml", ps.Rounds.within(plan, 2, expected_records=600))
    words = ("course", "rehearse", "study.toml", *files, "--target", "ill", "--out", "out", "--split", "0.25")
    done = privstats(*words, "--seed", "3", cwd=tmp_path, code=0)
    printed = done.stdout.splitlines()[-1].strip().removeprefix("privstats ")
    assert printed.startswith(f"score model.head {' '.join(files)} ")
    assert all(f" {words}" in printed for words in ("--target ill", "--split 0.25", "--seed 3"))
    seeds = (3, 1_000_000_003)
    summed = [
        RecordFile(tmp_path / name, "ill", split=0.25, seed=seed).read(names)
        for name, seed in zip(files, seeds, strict=True)
    ]
    releases = [ps.Release.load(each) for each in sorted((tmp_path / "out").iterdir())]
    ps.heads.RefinedSoftmax().fit_releases(releases).save(tmp_path / "model.head")
    scored = privstats(*printed.split(), "--json", cwd=tmp_path, code=0)
    assert json.loads(scored.stdout)["records"] == 600 - sum(len(each.y) for each in summed)
    counts = ps.Release.load(tmp_path / "out" / "0.release").moments.N
    assert abs(counts.sum() - sum(len(each.y) for each in summed)) < 20
    assert counts.sum() < 500


def test_hazards_are_read_from_files_by_name(privstats: Any, tmp_path: Path) -> None:
    files = written(tmp_path, PEOPLE)
    course = ps.Hazard.start(hazards.schema(times="continuous"), COHORT, promise(epsilon=8.0), by="arm")
    ps.course.write(tmp_path / "study.toml", course)
    privstats("course", "rehearse", "study.toml", *files, "--out", "out", cwd=tmp_path, code=0)
    assert len(list((tmp_path / "out").iterdir())) == course.most
    schema, published = course.schema, course.plan.published
    found = records_in(RecordFile(tmp_path / "0.csv"), schema.reading, "refuse")
    half = {name: column[::2] for name, column in PEOPLE.items()}
    assert exact_moments(schema, *found, published=published) == exact_moments(schema, half, published=published)
    counts = course.first.schema
    assert exact_moments(
        counts, *records_in(RecordFile(tmp_path / "0.csv"), counts.reading, "refuse")
    ) == exact_moments(counts, half)


def test_what_predicts_nothing_is_not_split(tmp_path: Path) -> None:
    written(tmp_path, PEOPLE)
    with pytest.raises(ps.errors.DataError, match="cannot be split"):
        records_in(RecordFile(tmp_path / "0.csv", split=0.5), hazards.schema().reading, "refuse")
