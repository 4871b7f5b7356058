"""A column that names persons or records is asked about, and not read before the answer; a measurement is read."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import privstats as ps
from privstats.cli.parts.declaring import of_public_file
from privstats.intake.columns import read
from privstats.moments import RecordFile
from privstats.workflows import rehearsal
from privstats.workflows.identifiers import id_questions
from privstats.workflows.rehearsal.assumed import kinds_of

Ids = Callable[[np.random.Generator, int], list[str]]


def running(rng: np.random.Generator, persons: int) -> list[str]:
    start = int(rng.integers(0, 10**6))
    return [str(start + place) for place in range(persons)]


def shuffled(rng: np.random.Generator, persons: int) -> list[str]:
    return [*map(str, rng.permutation(running(rng, persons)))]


def drawn(rng: np.random.Generator, persons: int) -> list[str]:
    """Random numbers of five to nine digits."""
    high = 10 ** int(rng.integers(5, 10))
    return [*map(str, np.unique(rng.integers(high // 10, high, 2 * persons))[:persons])][::-1]


def padded(rng: np.random.Generator, persons: int) -> list[str]:
    return [f"{int(each):09d}" for each in shuffled(rng, persons)]


def long(rng: np.random.Generator, persons: int) -> list[str]:
    """Numbers of 17 digits, which no float holds."""
    return [str(7 * 10**16 + int(each)) for each in drawn(rng, persons)]


def rounded(rng: np.random.Generator, persons: int) -> list[str]:
    """Numbers of 11 digits as Excel writes them."""
    return [f"{7e10 + 1e9 * rng.random():.5E}" for _ in range(persons)]


def cut(rng: np.random.Generator, persons: int) -> list[str]:
    """Numbers of 16 digits, of which Excel keeps 15."""
    return [f"{int(each):015d}0".replace("0", "4", 1) for each in rng.integers(10**14, 10**15, persons).tolist()]


def lettered(rng: np.random.Generator, persons: int) -> list[str]:
    return [f"P{each}" for each in shuffled(rng, persons)]


IDS: dict[str, Ids] = {
    each.__name__: each for each in (running, shuffled, drawn, padded, long, rounded, cut, lettered)
}  # fmt: skip


def rows_of(rng: np.random.Generator, visits: str) -> tuple[np.ndarray[Any, Any], int]:
    """Return which person each row is of, and how many persons there are."""
    if visits == "one":
        return np.arange(300), 300
    if visits == "some again":
        return np.concatenate([np.arange(300), rng.integers(0, 300, 9)]), 300
    persons = int(rng.integers(120, 250))
    counts = np.full(persons, rng.integers(2, 6)) if visits == "as many" else rng.integers(1, 7, persons)
    rows = np.repeat(np.arange(persons), counts)
    return (rows if visits == "in order" else rng.permutation(rows)), persons


def table_of(rng: np.random.Generator, ids: Ids, visits: str) -> dict[str, list[str]]:
    """Write a table of visits: what stays with a person, where an order alone shows the visits, is left out."""
    rows, persons = rows_of(rng, visits)
    names, size = ids(rng, persons), len(rows)
    fixed = {
        "sex": rng.choice(["f", "m"], persons)[rows],
        "born": rng.integers(1930, 2005, persons)[rows],
        "site": np.sort(rng.choice(["a", "b", "c"], persons))[rows],
    }
    vary = {
        "crp": np.round(rng.lognormal(3, 1, size), 1),
        "age": rng.integers(20, 90, size),
        "platelets": rng.normal(250, 60, size).astype(int),
        "ward": rng.choice([f"ward {place}" for place in range(15)], size),
        "score": rng.binomial(60, 0.3, size),
    }
    table = {"id": [names[row] for row in rows], **vary}
    if visits == "scattered" or (visits == "some again" and rng.random() < 0.5) or rng.random() < 0.5:
        table |= fixed
    return {name: [*map(str, values)] for name, values in table.items()}


VISITS = ("one", "some again", "as many", "in order", "scattered")


def check_table(seed: Any, ids: Ids, visits: str) -> None:
    """No id is read, and nothing else is asked about."""
    rng = np.random.default_rng(seed)
    table = table_of(rng, ids, visits)
    if rng.random() < 0.3:
        table["id"] = [
            "" if gap else each for each, gap in zip(table["id"], rng.random(len(table["id"])) < 0.03, strict=True)
        ]
    kinds = kinds_of({name: read(values) for name, values in table.items()}, table)
    assert isinstance(kinds["id"], str), (ids.__name__, visits, kinds["id"])
    others = {name: kind for name, kind in kinds.items() if name != "id"}
    assert not [name for name, kind in others.items() if isinstance(kind, str)], others
    answered = kinds_of({name: read(values) for name, values in table.items()}, table, trusted=["id"])
    assert ids is lettered or not isinstance(answered["id"], str)


@pytest.mark.parametrize("visits", VISITS)
@pytest.mark.parametrize("ids", IDS)
def test_no_id_is_read_and_a_measurement_is(ids, visits):
    for seed in range(3):
        check_table([seed, len(visits)], IDS[ids], visits)


@pytest.mark.nightly
@pytest.mark.parametrize("visits", VISITS)
@pytest.mark.parametrize("ids", IDS)
def test_no_id_is_read_and_a_measurement_is_of_many_tables(ids, visits):
    for seed in range(3, 60):
        check_table([seed, len(visits)], IDS[ids], visits)


@pytest.mark.parametrize(
    ("other", "asked"),
    [
        (lambda age: age // 10, False),  # an age group follows from an age
        (lambda age: 2020 - age, False),
        (lambda age: np.array(["young", "old"])[(age > 50).astype(int)], False),
        (
            lambda age: np.random.default_rng(1).permutation(100)[age],
            True,
        ),  # what a person keeps, and no order explains
    ],
)
def test_what_follows_from_a_value_shows_no_person(other, asked):
    age = np.random.default_rng(2).integers(20, 90, 900)
    table = {"age": read(age), "other": read(other(age))}
    assert ("age" in id_questions(table, {"age": ps.Numeric("age")})) == asked


@pytest.fixture
def files(tmp_path: Path) -> list[Path]:
    """Write visits of 60 persons at two hospitals."""
    for place in (0, 1):
        rng = np.random.default_rng(place)
        rows = rng.permutation(np.repeat(np.arange(60), 4))
        sex, ids = rng.choice(["f", "m"], 60), rng.permutation(np.arange(9000, 9060))
        ill = rng.choice(["no", "yes"], len(rows))
        text = "".join(
            f"{ids[row]},{sex[row]},{rng.normal(5, 2):.1f},{label}\n" for row, label in zip(rows, ill, strict=True)
        )
        (tmp_path / f"{'ab'[place]}.csv").write_text(f"case,sex,crp,ill\n{text}")
    return [tmp_path / "a.csv", tmp_path / "b.csv"]


def test_a_rehearsal_asks_and_reads_the_column_once_it_is_answered(files):
    sources = [RecordFile(path, "ill") for path in files]
    options = rehearsal.RehearsalOptions("ill", 3.0)
    what = rehearsal.opened(sources, options)
    assert [each.name for each in what.public.columns] == ["sex", "crp"]
    (question,) = rehearsal.oddities(what)
    assert question.startswith("case: records with one value agree in sex, as those of one person do; it is not read.")
    assert "pass --persons case or --drop case (in Python persons=, drop=); else pass --read case" in question
    for answer in ({"read": ("CASE",)}, {"drop": ("case",)}, {"persons": "case"}):
        told = rehearsal.opened(sources, rehearsal.RehearsalOptions("ill", 3.0, **answer))
        assert rehearsal.oddities(told) == []
        assert ("case" in [each.name for each in told.public.columns]) == ("read" in answer)
    with pytest.raises(ps.DataError, match="has no column 'nobody'"):
        rehearsal.opened(sources, rehearsal.RehearsalOptions("ill", 3.0, read=("nobody",)))


def test_a_public_file_and_a_look_ask_too(files):
    found = of_public_file(RecordFile(files[0], "ill"), ())
    assert [each.name for each in found.columns] == ["sex", "crp"]
    assert found.left_out["case"].startswith("records with one value agree in sex")
    assert "case" in [each.name for each in of_public_file(RecordFile(files[0], "ill"), (), ["Case"]).columns]
    with pytest.raises(ps.DataError, match="has no column 'nobody' that --read names"):
        of_public_file(RecordFile(files[0], "ill"), (), ["nobody"])


def test_the_commands_ask_and_read_the_answer(privstats, files, tmp_path):
    trial = ("try", "a.csv", "b.csv", "--target", "ill", "--epsilon", "3")
    assert "pass --persons case or --drop case" in " ".join(privstats(*trial, cwd=tmp_path, code=0).stdout.split())
    answered = privstats(*trial, "--read", "case", cwd=tmp_path, code=0).stdout
    assert "case, sex, crp" in answered
    assert "--persons case" not in answered
    answers = ("clients", "5", "vanish", "0", "colluders", "1", "max-records", "900", "model", "central", "unit")
    words = [*answers, "record", "adjacency", "add-remove", "epsilon", "1", "delta", "1e-6"]
    options = [f"--{word}" if place % 2 == 0 else word for place, word in enumerate(words)]
    init = ("plan", "init", "--yes", "--force", "--from", "a.csv", "--public-file", "--target", "ill", *options)
    said = " ".join(privstats(*init, cwd=tmp_path, code=0).stdout.split())
    assert "not read: case: records with one value agree in sex" in said
    assert "If it names no person or record, pass --read case" in said
    assert "not read" not in privstats(*init, "--read", "case", cwd=tmp_path, code=0).stdout
    refused = privstats("plan", "init", "--force", "--from", "a.csv", "--read", "case", cwd=tmp_path, code=2)
    assert "--read names a column of a public file" in refused.stderr
    plan = tmp_path / "plan.toml"
    assert [each.name for each in ps.Plan.read(plan).schema.transform[0].columns] == ["case", "sex", "crp"]
    looked = " ".join(privstats("look", "a.csv", "--plan", "plan.toml", cwd=tmp_path, code=0).stdout.split())
    assert "case: records with one value agree in sex, as those of one person do. If it names persons or" in looked
