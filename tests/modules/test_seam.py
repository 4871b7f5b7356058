"""The seam for models of rounds that other packages bring: found by word, held to its bounds, refused by name."""

from __future__ import annotations

import hashlib
import json
import os
import subprocess
import sys
from collections.abc import Callable
from dataclasses import replace
from importlib.metadata import EntryPoint
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import privstats as ps
from privstats import doors
from privstats.errors import HeadError, SchemaError
from privstats.heads.rules import rule_of
from privstats.schema import modules
from privstats.schema.public_values import Published, Values
from privstats.testing import check_module
from tests.brought import announce
from tests.planted import plant_entries

VECTORS = Path(__file__).parent / "vectors"
SCHEMA = ps.GradientSchema(4, 3, residual_norm=1.0, expected_records=100, course_mu=1.0, module="mlp/2")
READ = """
import pathlib, sys
import privstats as ps
from privstats.course import read
place = pathlib.Path(sys.argv[1])
for load, name in ((ps.Plan.read, "adapter-8.plan.toml"), (read, "adapter-8.toml"),
                   (ps.Release.load, "adapter-8.release"), (ps.heads.load, "adapter-8.head")):
    try:
        load(place / name)
        print("read", name)
    except ps.PrivstatsError as error:
        print(error)
"""


@pytest.fixture
def broken(monkeypatch: pytest.MonkeyPatch) -> None:
    """A package is installed whose module breaks a promise."""
    plant_entries(monkeypatch, modules.MODULES.group, {"broken": "tests.modules.models:Broken"})


def summed(how: str, labels: list[int]) -> Any:
    schema = replace(SCHEMA, module=f"broken/{how}")
    values = {"M": Values.rounded(np.eye(4)), "w": Values.rounded(np.zeros(5))}
    X = np.random.default_rng(0).normal(size=(len(labels), 4))
    return ps.measure(schema, X, np.array(labels), published=Published.of(values))


@pytest.mark.usefixtures("broken")
@pytest.mark.parametrize("how", ["part", "nan", "kappa", "raises", "exits"])
def test_what_a_module_may_not_give_counts_as_zero_and_nothing_else_does(how: str) -> None:
    clean = summed("none", [0, 2, 0])
    assert clean.g.any()
    dirty = summed(how, [0, 2, 0, 1, 1])
    assert (dirty.records, dirty.k) == (5, 0)
    assert np.array_equal(dirty.g, clean.g)


@pytest.mark.usefixtures("broken")
def test_an_array_that_a_module_uses_again_is_copied() -> None:
    schema = replace(SCHEMA, module="broken/reuses")
    units = [np.full((1, 5), float(each)) for each in (1, 2)]
    formed = [modules.checked_gradients(schema, schema.network, each, np.zeros(1, np.intp), None)[0] for each in units]  # type: ignore[arg-type]
    assert 2 * formed[0].sum() == formed[1].sum() > 0


@pytest.mark.usefixtures("broken")
def test_a_row_longer_than_the_norm_counts_as_zero() -> None:
    assert not summed("long", [0, 1, 2]).g.any()


@pytest.mark.usefixtures("broken")
def test_sums_of_another_shape_are_refused_by_name() -> None:
    with pytest.raises(SchemaError, match="module 'broken/shape' returned sums of another shape than it declares"):
        summed("shape", [0, 1])


@pytest.mark.usefixtures("broken")
@pytest.mark.parametrize(
    ("how", "said"),
    [
        ("long", "rows longer than"),
        ("part", "not whole"),
        ("nan", "not whole"),
        ("kappa", "kappa outside"),
        ("mixed", "other numbers among other records"),
        ("shape", "arrays of shapes"),
    ],
)
def test_the_check_for_packages_finds_each_broken_promise(how: str, said: str) -> None:
    with pytest.raises(AssertionError, match=said):
        check_module(f"broken/{how}")
    check_module("broken/none")


@pytest.mark.parametrize("word", ["mlp/4", "adapter/3"])
@pytest.mark.parametrize("bits", [2, 12, 13])
def test_the_modules_keep_theirs(word: str, bits: int) -> None:
    pytest.importorskip("opacus")
    check_module(word, grid_bits=bits)


@pytest.mark.parametrize(
    ("value", "said"),
    [
        ("nowhere:late", "the module 'late' of late 0.1 cannot be loaded: ModuleNotFoundError"),
        ("builtins:str", "the module 'late' of late 0.1 builds no Module from a size; repair or uninstall that"),
    ],
)
def test_a_module_that_is_announced_wrongly_is_refused_by_the_name_of_its_package(
    value: str, said: str, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setattr(doors, "announced", found_in(tmp_path, modules.MODULES.group, {"late": value}))
    with pytest.raises(SchemaError, match=said):
        replace(SCHEMA, module="late/9")


@pytest.mark.parametrize(
    ("value", "said"),
    [
        ("nowhere:late", "the rule 'late' of late 0.1 cannot be loaded: ModuleNotFoundError"),
        ("builtins:str", "late 0.1 announces the rule 'late' as 'builtins:str', which is no rule of that name"),
    ],
)
def test_a_rule_that_is_announced_wrongly_is_refused_by_the_name_of_its_package(
    value: str, said: str, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setattr(doors, "announced", found_in(tmp_path, "privstats.rules", {"late": value}))
    with pytest.raises(HeadError, match=said):
        rule_of("late", {})


def found_in(site: Path, group: str, entries: dict[str, str]) -> Callable[[str], list[EntryPoint]]:
    from importlib.metadata import distributions

    announce("late", site, group, entries)
    return lambda asked: [
        entry for found in distributions(path=[str(site)]) for entry in found.entry_points if entry.group == asked
    ]


def test_files_from_before_the_modules_were_a_package_are_read_with_it(tmp_path: Path) -> None:
    """Written when the library brought them itself: the same digests, the same scores, the same rule. The claim names
    the package, and so does a plan that is run from now on."""
    said = json.loads((VECTORS / "said.json").read_text())
    course = ps.course.read(VECTORS / "adapter-8.toml")
    assert (course.digest, course.mu) == (said["course"], said["mu"])
    plan = ps.Plan.read(VECTORS / "adapter-8.plan.toml")
    assert 'package = "hidden-layer 0.1"' in plan.to_toml()
    assert plan.digest != plan.unnamed.digest == said["plans"][-1]
    release = ps.Release.load(VECTORS / "adapter-8.release")
    assert release.plan.digest == said["plans"][-1]
    assert (
        "hidden-layer 0.1 maps each record by itself in 'adapter/8', always with the same result"
        in release.budget.promise
    )
    release.save(tmp_path / "again.release")
    assert ps.Release.load(tmp_path / "again.release") == release
    assert hashlib.sha256(np.asarray(release.vector).tobytes()).hexdigest() == said["vectors"][-1]
    head = ps.heads.load(VECTORS / "adapter-8.head")
    assert (type(head).__name__, head.rule_.kind) == ("RefinedSoftmax", "hidden")
    X = np.random.default_rng(0).normal(size=(20, 6))
    np.testing.assert_allclose(head.decision_function(X), np.array(said["scores"]), atol=1e-9)
    ps.course.write(tmp_path / "adapter-8.toml", course)
    assert (tmp_path / "adapter-8.toml").read_bytes() == (VECTORS / "adapter-8.toml").read_bytes()


@pytest.mark.ci
def test_without_the_package_every_file_is_refused_by_what_to_install() -> None:
    places = [place for place in sys.path if place and "hidden" not in place]
    lacking = [place for place in places if not any(Path(place).glob("hidden_layer*"))]
    told = {**os.environ, "PYTHONPATH": os.pathsep.join(lacking)}
    done = subprocess.run([sys.executable, "-c", READ, str(VECTORS)], env=told, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    plan, course, release, head = done.stdout.splitlines()
    install = "module = 'adapter/8' needs the module 'adapter', which no installed package announces"
    assert install in plan
    assert install in course
    assert install in release
    assert "this head needs the rule 'hidden', which no installed package announces" in head
