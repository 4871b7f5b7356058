"""A rehearsal of patients: nobody on both sides, a promise for each, and no id anywhere."""

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import privstats as ps
from privstats.workflows import rehearsal
from privstats.workflows.rehearsal.parties import Party

ASKED: dict[str, Any] = {"target": "ill", "epsilon": 20.0, "persons": "patient"}
VISITS, PATIENTS, GAPS = 3, 150, 4


def visits(seed: int) -> dict[str, list[Any]]:
    """Visits of patients whose texts recur, some without an id, with an outcome that follows from a dose."""
    dose = np.random.default_rng(seed).normal(size=VISITS * PATIENTS).round(3)
    ids: list[str] = [f"id-{seed}-{row // VISITS:04d}" for row in range(len(dose))]
    ids[:GAPS] = [""] * GAPS
    return {"Patient": ids, "dose": dose.tolist(), "ill": [("no", "yes")[int(value > 0)] for value in dose]}


@pytest.fixture(scope="module")
def tables() -> dict[str, dict[str, list[Any]]]:
    return {name: visits(seed) for seed, name in enumerate(("north", "south"))}


@pytest.fixture(scope="module")
def folder(tables: dict[str, Any], tmp_path_factory: pytest.TempPathFactory) -> Path:
    found = tmp_path_factory.mktemp("visits")
    for name, table in tables.items():
        rows = [",".join(map(str, row)) for row in zip(*table.values(), strict=True)]
        (found / f"{name}.csv").write_text("\n".join([",".join(table), *rows]) + "\n")
    return found


@pytest.fixture(scope="module")
def found(tables: dict[str, Any], folder: Path) -> rehearsal.Rehearsal:
    return ps.rehearse(tables, **ASKED, rng=ps.randomness.seeded(0), page=folder / "page.html")


def sides(party: Party) -> tuple[set[str], set[str]]:
    return set(party.ids[party.test]), set(party.ids[~party.test])


def test_nobody_stands_on_both_sides_in_any_table(found: rehearsal.Rehearsal, tables: dict[str, Any]) -> None:
    for party in found.opened.parties:
        held, summed = sides(party)
        assert not held & summed
        assert 0.1 < len(held) / (len(held) + len(summed)) < 0.4
        assert (party.persons(test=True), party.persons(test=False)) == (len(held), len(summed))
    same = rehearsal.opened([*found.opened.files[:1], *found.opened.files[:1]], found.opened.asked).parties
    assert not sides(same[0])[0] & sides(same[1])[1]


def test_the_promise_is_one_per_person_and_is_said(found: rehearsal.Rehearsal) -> None:
    what = found.opened
    assert (what.privacy.unit, what.privacy.person_clip, what.privacy.max_records_per_person) == ("person", 1.0, 1)
    assert {release.plan.privacy.unit for release in found.releases} == {"person"}  # type: ignore[union-attr]
    assert "one person at one party" in dict(rehearsal.costs(found))["promise for all sessions together"]
    said = {each.what: each for each in rehearsal.assumptions(what)}
    assert said["unit"].assumed == "person"
    assert "weigh at most one row" in said["unit"].elsewhere
    assert said["not read"].assumed == "patient: whose a record is"
    assert found.exact.value > 0.9
    assert "For north's own patients the joint model is worth" in str(found)
    assert found.private.value > 0.6


def test_rows_without_an_id_are_left_out_and_counted(found: rehearsal.Rehearsal) -> None:
    costs, parties = dict(rehearsal.costs(found)), found.opened.parties
    assert costs["records without an id, excluded"] == str(2 * GAPS)
    assert [len(party.y) for party in parties] == [VISITS * PATIENTS - GAPS] * 2
    assert costs["persons summed"] == str(sum(len(sides(party)[1]) for party in parties))
    assert costs["persons held out to score on"] == str(sum(len(sides(party)[0]) for party in parties))


def test_no_id_stands_among_the_columns_on_the_page_or_in_the_object(found, folder, tables):
    assert [each.name for each in found.opened.public.columns] == ["dose"]
    shown = (folder / "page.html").read_text("utf-8") + json.dumps(rehearsal.facts(found)) + str(found)
    assert "one person at one party" in shown
    assert "id-0" not in shown
    assert "id-1" not in shown
    assert "records of persons of all parties who were in no sum" in shown


def test_files_and_tables_are_read_alike(found: rehearsal.Rehearsal, folder: Path) -> None:
    names = ["north.csv", "south.csv"]
    other = ps.rehearse([folder / name for name in names], **ASKED, rng=ps.randomness.seeded(0))
    assert (other.private, other.exact) == (found.private, found.exact)
    assert other.opened.public == found.opened.public
    for one, two in zip(other.opened.parties, found.opened.parties, strict=True):
        assert np.array_equal(one.test, two.test)
        assert sides(one) == sides(two)


def test_the_next_commands_and_the_plan_say_persons(found: rehearsal.Rehearsal) -> None:
    (names, _), (plan, _), (look, why), _ = rehearsal.next_commands(found.opened, kept=False)
    assert names.endswith("--from north.csv --drop patient")
    assert plan.endswith("--target ill --unit person --person-clip 1 --max-records-per-person 1")
    assert look.endswith("--plan plan.toml --key patient")
    assert rehearsal.before_a_score(found.opened)[0].endswith("--target ill --split 0.25 --persons patient")
    assert why.endswith("needs --persons patient")


@pytest.mark.parametrize(
    ("changes", "told"),
    [
        (
            {"persons": "nobody"},
            r"has no column 'nobody'.*in --target, --drop, --persons or --read \(in Python .*persons=, read=\)",
        ),
        ({"target": "patient"}, "'patient' holds the person ids and cannot be predicted"),
    ],
)
def test_a_column_that_cannot_tell_is_refused(tables: dict[str, Any], changes: dict[str, str], told: str) -> None:
    with pytest.raises(ps.DataError, match=told):
        ps.rehearse(tables, **ASKED | changes)


def test_without_it_ids_that_recur_say_how_they_are_named(found: rehearsal.Rehearsal) -> None:
    bare = rehearsal.opened(found.opened.files, rehearsal.RehearsalOptions("ill", 3.0))
    assert "name it with --persons" in bare.public.left_out["Patient"]
    assert bare.privacy.unit == "record"
    assert dict(rehearsal.next_commands(bare, kept=True)).keys() == {
        "privstats plan init plan.toml --from north.csv --public columns.toml --target ill",
        "privstats look north.csv --plan plan.toml",
        "privstats look south.csv --plan plan.toml",
    }
