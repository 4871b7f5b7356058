"""A rehearsal takes in a site without a record of some class; a refusal names its one cause."""

from collections.abc import Callable
from itertools import permutations
from typing import Any

import numpy as np
import pytest

import privstats as ps
from privstats.workflows import rehearsal
from privstats.workflows.rehearsal.run import _sources_of
from tests.lengths import first_by_day

ASKED = rehearsal.RehearsalOptions("ill", 20.0, drop=("id",))


def site(seed: int, records: int = 400) -> dict[str, Any]:
    rng = np.random.default_rng(seed)
    dose = rng.normal(size=records).round(3)
    ill = (dose + rng.normal(size=records) > 0.8).astype(int)
    return {"dose": dose, "ill": ill, "id": np.array([f"p{place}" for place in range(records)])}


def rows(table: dict[str, Any], chosen: Any) -> dict[str, Any]:
    return {name: values[chosen] for name, values in table.items()}


def _some_held_out(table: dict[str, Any], *, held_out: bool) -> dict[str, Any]:
    """All records without the event, and those with it that are held out, or only those that are summed."""
    (party, _) = rehearsal.opened(_sources_of([table, site(9)], "ill"), ASKED).parties
    return rows(table, (table["ill"] == 0) | (party.test == held_out))


SITES: dict[str, Callable[[dict[str, Any]], dict[str, Any]]] = {
    "no event": lambda table: rows(table, table["ill"] == 0),
    "events only": lambda table: rows(table, table["ill"] == 1),
    "no event held out": lambda table: _some_held_out(table, held_out=False),
    "no event summed": lambda table: _some_held_out(table, held_out=True),
    "no record with a class": lambda table: table | {"ill": [None] * len(table["ill"])},
    "one record": lambda table: rows(table, slice(0, 1)),
    "one event": lambda table: rows(table, np.r_[np.flatnonzero(table["ill"] == 0), np.flatnonzero(table["ill"])[:1]]),
}
CASES = [
    (name, persons, place) for name in SITES for persons in (None, "id") for place in range(3)
    if not (name == "one record" and place == 0)  # its columns cannot be read from the first file
]  # fmt: skip


@pytest.mark.parametrize(("name", "persons", "place"), first_by_day(CASES, lambda name, *_: name))
def test_a_site_that_lacks_a_class_is_taken_in(name: str, persons: str | None, place: int) -> None:
    tables = [site(0), site(1)]
    tables.insert(place, SITES[name](site(2)))
    drop = () if persons else ("id",)
    named = dict(zip("abc", tables, strict=True))
    found = ps.rehearse(named, target="ill", epsilon=20.0, persons=persons, drop=drop)
    assert found.private.value > 0.7
    others = [each for each in "abc" if each != "abc"[place]]
    assert all(found.alone[each] is not None and found.own[each].gain is not None for each in others)
    party, own = found.opened.parties[place], found.own["abc"[place]]
    lacks = {test: bool(party.lacks(found.opened.public.classes, test=test)) for test in (False, True)}
    assert any(lacks.values())
    assert (found.alone["abc"[place]] is None) == lacks[False]
    assert (own.private is None) == lacks[True]
    assert (own.alone is None) == (own.gain is None) == any(lacks.values())
    (worth,) = [each for each in rehearsal.worths(found) if each.bars[0].name.startswith(f"{'abc'[place]}'s")]
    assert "-" in [bar.shown for bar in worth.bars]
    assert "there is no " in worth.conclusion
    assert worth.conclusion in str(found)
    assert rehearsal.facts(found)["own_records"]["abc"[place]]["gain"] is None


def test_a_page_shows_a_site_without_an_event(tmp_path: Any) -> None:
    page = tmp_path / "page.html"
    tables = {"north": site(0), "south": SITES["no event"](site(1))}
    ps.rehearse(tables, target="ill", epsilon=20.0, drop=("id",), page=page)
    assert "no record held out has the class 1." in page.read_text("utf-8")


@pytest.mark.parametrize("order", list(permutations(range(3)))[::2])
def test_classes_of_sites_with_one_class_each_are_those_of_all(order: tuple[int, ...]) -> None:
    tables = [SITES["no event"](site(0)), SITES["events only"](site(1)), SITES["no event"](site(2))]
    what = rehearsal.opened(_sources_of([tables[place] for place in order], "ill"), ASKED)
    assert what.public.classes == ("0", "1")


def test_each_cause_of_a_refusal_has_its_own_remedy() -> None:
    def refusal(*tables: dict[str, Any]) -> str:
        with pytest.raises(ps.DataError) as told:
            rehearsal.opened(_sources_of(tables, "ill"), ASKED)
        return str(told.value)

    words = np.array(["no", "Yes"])
    rare, coded, named = site(1), site(1), site(1) | {"ill": words[site(1)["ill"]]}
    rare["ill"][rare["ill"] == 1] = 0
    rare["ill"][:1] = 1
    coded["ill"][:1] = 9
    few = refusal(rows(site(0), site(0)["ill"] == 0), rare)
    assert few == (
        "all files together have too few records to fit and to score of the ill 1 (1); pass files with more, omit "
        "these records, or pass another --test (in Python test=)"
    )
    assert "pass --gaps ill=9 (in Python gaps=) if that is no class" in refusal(coded, site(0))
    others = refusal(site(0), named)
    assert others.startswith("party 2 has no record of the ill 0, 1 (ill: 400 records hold none of the classes 0, 1")
    cased = refusal(site(0) | {"ill": np.array(["no", "yes"])[site(0)["ill"]]}, named)
    assert "By case alone differs Yes for yes): correct it" in cased
    assert "--gaps" not in few + others + cased
