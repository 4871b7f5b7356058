"""Attacks on streams: each collects more than was paid for from a weakened double, and fails against ours.

A server that stays silent after the upload, one that compares a tree's lists, and records that come and go. And an
audit of a whole stream by canaries, played by a server that says that its victim dropped out.
"""

import math
from dataclasses import replace
from pathlib import Path
from types import MappingProxyType
from typing import Any

import numpy as np
import pytest

import privstats as ps
from benchmarks.streams import audit
from privstats.contrib.streams import stream
from privstats.contrib.streams.mechanisms import MECHANISMS
from tests.contrib.streams.streams import CLIENTS, EXACT, World, careless, exact_stream, plan_of, registry, stream_of
from tests.contrib.streams.test_record_registry import machine, others_of, played, sent
from tests.made import refused

VICTIM, EPOCHS = 0, 4


def silenced(folder: Path, name: str) -> tuple[ps.Stream, World, list[Any]]:
    """A server that uses every vector of its victim and tells it that it dropped out, epoch after epoch."""
    stream, world, releases = exact_stream(EPOCHS), World(), []
    book = registry(folder, stream, name)
    book.enter(world.born(VICTIM, 3))
    for node in range(EPOCHS):
        machines = [machine(book, world, node, releases), *others_of(stream, world, node)]
        releases.append(played(stream, machines, node, {"agree": {VICTIM}}))  # it hears nothing any more
        try:
            book.lose(node)
        except ps.LedgerError:
            continue
    return stream, world, releases


def test_attack_a_catch_up_after_silence(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Were the records sent again, the server would have them every epoch: sqrt T times the claim."""
    stream, world, releases = silenced(tmp_path, "ours")
    assert all(VICTIM in release.survivors for release in releases)  # silence was a lie
    assert np.array_equal(stream.total(releases).vector, ps.encoding.flatten(world.afresh()))
    with monkeypatch.context() as weakened:
        careless(weakened)
        stream, world, releases = silenced(tmp_path, "double")
    assert np.array_equal(stream.total(releases).vector, EPOCHS * ps.encoding.flatten(world.afresh()))


def test_attack_a_tree_with_lists_of_its_own(monkeypatch: pytest.MonkeyPatch) -> None:
    """Without noise leaf + leaf - parent is one client's bare change, where the parent's list lacks that client."""
    world = World()
    epochs = [[world.change(world.born(k, 4)) for k in range(CLIENTS)] for _ in range(2)]
    refused(ps.PlanError, "leaf \\+ leaf - parent is the bare change", ps.Stream, plan_of(privacy=EXACT), 2, "tree")

    bare = {**MECHANISMS, "tree": replace(MECHANISMS["tree"], private=False)}
    monkeypatch.setattr(stream, "MECHANISMS", MappingProxyType(bare))
    double = ps.Stream(plan_of(privacy=EXACT), 2, "tree")
    leaf, other, parent = ps.simulate(double, epochs, [None, None, {"mask": {VICTIM}}], ps.randomness.seeded(1))
    stolen = leaf.vector + other.vector - parent.vector  # type: ignore[union-attr]
    assert np.array_equal(stolen, ps.encoding.flatten(epochs[0][VICTIM] + epochs[1][VICTIM]))


def test_attack_a_record_that_comes_and_goes(tmp_path: Path) -> None:
    """Every epoch one more change of the same record: sqrt(T / 2) times the claim, and sums cannot see it."""
    bought = stream_of(EPOCHS, deletions=True)
    world = World()
    (name,) = world.born(VICTIM, 1)
    v = ps.encoding.flatten(world.change([name]))
    unchecked = [(-1) ** epoch * v for epoch in range(EPOCHS)]  # the double: signed moments without a book
    claimed = 2 * (v @ v)
    assert sum(change @ change for change in unchecked) / claimed == pytest.approx(EPOCHS / 2)
    book, moved = registry(tmp_path, bought), 0
    for node in range(EPOCHS):
        for move in (book.enter, book.leave):
            try:
                move([name])
                break
            except ps.LedgerError:
                continue
        pending = sent(book, node, [name])
        moved += len(pending.entering) + len(pending.leaving)
    assert (moved, book.state(name)) == (2, "gone")


def test_attack_the_totals_before_and_after_show_who_left() -> None:
    """Without noise their difference is the leaver, on the grid: refused, unless asked for by name."""
    world = World()
    born = [world.change(world.born(k, 4)) for k in range(CLIENTS)]
    (gone,) = world.dead(VICTIM, 1)
    left = [world.change((), [gone] if k == VICTIM else ()) for k in range(CLIENTS)]
    double = exact_stream(2)
    releases = ps.simulate(double, [born, left], rng=ps.randomness.seeded(1))
    stolen = double.total(releases[:1]).vector - double.total(releases).vector
    assert np.array_equal(stolen, ps.encoding.flatten(world.measured([gone])))

    refused(ps.PlanError, "allow_disclosing_leavers=True", ps.Stream, plan_of(privacy=EXACT), 2, deletions=True)
    noisy = stream_of(2, deletions=True)
    after = noisy.total(ps.simulate(noisy, [born, left], rng=ps.randomness.seeded(1)))
    assert after.sigma["A"] > noisy.plan.schema.clip_norm  # more than the row that left could be long


@pytest.mark.ci
@pytest.mark.parametrize("mechanism", ["increments", pytest.param("tree", marks=pytest.mark.nightly)])
def test_an_audit_of_the_whole_stream_stays_below_its_claim(mechanism: str) -> None:
    audited = audit.stream_of(mechanism, EPOCHS)
    assert 0.7 < audit.audited(audited, audit.OURS, 800)["ratio"] <= 1
    assert 1.2 < audit.audited(audited, audit.CARELESS, 800)["ratio"] <= math.sqrt(EPOCHS)
