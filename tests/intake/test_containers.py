"""The law of reading: no record changes what another record adds, in 32 containers (``containers_fuzz``)."""

import subprocess
from collections.abc import Iterable, Mapping
from pathlib import Path

import pytest

from tests.intake import containers_fuzz as fuzz
from tests.intake.containers import CONTAINERS, Table
from tests.lengths import sized
from tests.night import number_of_commit


@pytest.mark.parametrize("table", list(fuzz.known()), ids=lambda table: f"{table.name}, {table.clip or 'record'}")
def test_a_table_that_once_broke_the_law_breaks_it_nowhere(table: Table, tmp_path: Path) -> None:
    assert fuzz.broken_in(table, tmp_path) == {}


@pytest.mark.parametrize(
    "part", [pytest.param(part, marks=pytest.mark.nightly if part % 2 else ()) for part in range(10)]
)
def test_drawn_tables_keep_the_law(part: int, tmp_path: Path) -> None:
    """The first 20 of 200 tables, two at a time; half of them in the night."""
    assert _broken(range(2 * part, 2 * part + 2), tmp_path) == {}


@pytest.mark.ci
@pytest.mark.parametrize("part", range(6))
def test_more_drawn_tables_keep_the_law(part: int, tmp_path: Path) -> None:
    """Sixty of the other 180 tables, others with each commit, so that three commits try them all."""
    first = 20 + 60 * (_turn() % 3) + 10 * part
    assert _broken(range(first, first + 10), tmp_path) == {}


def _turn() -> int:
    """Return the number of this commit; 0 in a tree without git."""
    try:
        return number_of_commit()
    except (OSError, subprocess.CalledProcessError):
        return 0


def _broken(places: Iterable[int], folder: Path, seed: str = "run") -> dict[str, dict[str, Mapping[str, str]]]:
    """By table, how it breaks the law."""
    tables = (fuzz.drawn(f"{seed}/{place}") for place in places)
    return {table.name: broken for table in tables if (broken := fuzz.broken_in(table, folder))}


@pytest.mark.nightly
@pytest.mark.parametrize("seed", range(4))
def test_many_drawn_tables_keep_the_law(seed: int, tmp_path: Path) -> None:
    assert _broken(range(sized(50, 1250)), tmp_path, str(seed)) == {}


def test_the_fuzzer_draws_what_every_container_can_hold(tmp_path: Path) -> None:
    names = {name for name, container in CONTAINERS.items() if container.is_available}
    for place in range(40):
        names -= {name for name in names if fuzz.verdict(name, fuzz.drawn(f"held/{place}"), tmp_path)}
    assert names == set()
