"""The price of a release is computed from its noise, and nothing that is sent has none; of every kind of schema."""

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

import privstats as ps
from privstats.dp import Ledger, Noise, calibrate
from privstats.dp.mechanisms import draw_central
from privstats.encoding import layout_of
from privstats.errors import LedgerError, PlanError
from privstats.randomness import seeded
from privstats.schema import Schema
from tests import made
from tests.schema.samples import PROMISED


def promise_of(schema: Schema, **changes: Any) -> ps.Privacy:
    """Per record, or per client where no plan promises a record."""
    if not schema.refusal("record"):
        return made.promise(**changes)
    most = 1 if isinstance(schema, ps.PartySchema) else 50
    clip = None if isinstance(schema, ps.PartySchema) else 5.0
    return made.promise(unit="client", max_records_per_client=most, client_clip=clip, **changes)


def ledger_of(folder: Path, privacy: ps.Privacy) -> Ledger:
    ledger = Ledger.create(folder / "ledger.db")
    ledger.set_cap("ward", unit=privacy.unit, adjacency=privacy.adjacency, epsilon=90.0, delta=1e-5)
    return ledger


def spend(ledger: Ledger, schema: Schema, privacy: ps.Privacy, noise: Noise, run: bytes = b"may") -> Any:
    return ledger.spend("ward", plan="0" * 64, run=run, schema=schema, privacy=privacy, noise=noise)


@pytest.mark.parametrize("schema", PROMISED, ids=lambda schema: f"{type(schema).__name__}-{schema.statistics}")
def test_every_statistic_that_is_sent_must_have_noise(schema: Schema, tmp_path: Path) -> None:
    privacy = promise_of(schema)
    ledger, noise = ledger_of(tmp_path, privacy), calibrate(schema, privacy, honest_shares=1)
    for letter in schema.statistics:
        less = replace(noise, rows=tuple(row for row in noise.rows if row.statistic != letter))
        flat = tuple(replace(row, sigma=float("inf")) if row.statistic == letter else row for row in noise.rows)
        for broken in (less, replace(noise, rows=flat)):
            with pytest.raises(
                LedgerError, match=f"noise has no scale for {letter}: those would be exact, so give the noise"
            ):
                spend(ledger, schema, privacy, broken)
    assert not ledger.account("ward").entries
    assert spend(ledger, schema, privacy, noise).mu == noise.mu


@pytest.mark.parametrize("schema", PROMISED, ids=lambda schema: f"{type(schema).__name__}-{schema.statistics}")
def test_noise_that_says_less_of_itself_than_it_costs_is_refused(schema: Schema, tmp_path: Path) -> None:
    privacy = promise_of(schema)
    ledger, noise = ledger_of(tmp_path, privacy), calibrate(schema, privacy, honest_shares=1)
    thin = replace(noise, rows=tuple(replace(row, sigma=row.sigma / 2) for row in noise.rows))
    for lie in (thin, replace(noise, mu=0.99 * noise.mu)):
        with pytest.raises(LedgerError, match="it was sized for another; give the noise of a plan of this schema"):
            spend(ledger, schema, privacy, lie)
    assert not ledger.account("ward").entries


@pytest.mark.parametrize("letters", ["NAT", "NAF", "NATF", "NADTF"])
@pytest.mark.parametrize("adjacency", ["add-remove", "replace-one"])
def test_third_and_fourth_powers_are_not_for_nothing(letters: str, adjacency: str, tmp_path: Path) -> None:
    """No plan promises them, and noise for the rest was taken for noise of all."""
    privacy = made.promise(adjacency=adjacency)
    noise = calibrate(ps.ClassSchema(2, 4, "NA", 1.0), privacy, honest_shares=1)
    with pytest.raises(LedgerError, match="noise has no scale for .*; nothing was spent"):
        spend(ledger_of(tmp_path, made.promise()), ps.ClassSchema(2, 4, letters, 1.0, grid_bits=10), privacy, noise)


def test_noise_of_another_schema_is_refused(tmp_path: Path) -> None:
    privacy, narrow = made.promise(), ps.ClassSchema(2, 4, "NA", 1.0)
    ledger, noise = ledger_of(tmp_path, privacy), calibrate(narrow, privacy, honest_shares=1)
    with pytest.raises(LedgerError, match=r"the noise says mu 0\.2681 and costs 26\.54 under this schema"):
        spend(ledger, replace(narrow, clip_norm=100.0), privacy, noise)
    pure = made.promise(delta=0.0)
    laplace = calibrate(narrow, pure, honest_shares=1)
    with pytest.raises(LedgerError, match="sized for another"):  # a grid twice as fine moves twice as many steps
        spend(ledger, replace(narrow, grid_bits=13), pure, laplace)
    without = replace(laplace, laplace=tuple(each for each in laplace.laplace if each[0] != "N"))
    with pytest.raises(LedgerError, match="no scale for N"):
        spend(ledger, narrow, pure, without)
    assert spend(ledger, narrow, pure, laplace).pure == 1.0


@pytest.mark.parametrize("unit", [{"unit": "client", "max_records_per_client": 9, "client_clip": 2.0},
    {"unit": "person", "max_records_per_person": 9, "person_clip": 2.0}], ids=["client", "person"])  # fmt: skip
def test_whole_units_are_priced_by_the_shares_that_clip_them(unit: Any, tmp_path: Path) -> None:
    """Not by those that the noise says of itself: a liar's would make the same noise cheaper."""
    schema, given = ps.ClassSchema(2, 4, "NA", 1.0), {"N": 0.5, "A": 0.5}
    privacy, other = made.promise(**unit), made.promise(**unit, shares=given)
    ledger, noise = ledger_of(tmp_path, privacy), calibrate(schema, privacy, honest_shares=1)
    thin = tuple(replace(row, sigma=row.sigma / 3, share=min(1.0, row.share * 9)) for row in noise.rows)
    for lie in (calibrate(schema, other, honest_shares=1), replace(noise, rows=thin)):
        with pytest.raises(LedgerError, match="sized by other shares than those that clip whole units here"):
            spend(ledger, schema, privacy, lie)
    assert not ledger.account("ward").entries
    assert spend(ledger, schema, privacy, noise).mu == noise.mu


def test_noise_is_drawn_for_every_segment_or_for_none() -> None:
    noise = calibrate(ps.ClassSchema(2, 4, "NA", 1.0), made.promise(), honest_shares=1)
    with pytest.raises(PlanError, match="noise has no scale for B, which the layout has"):
        draw_central(noise, layout_of(ps.ClassSchema(2, 4, "NAB", 1.0)), seeded(0))
