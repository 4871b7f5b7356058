"""Read the effects of a treatment: estimates, the arms' balance, or the arms' outcomes."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import Any

from privstats import inference
from privstats.course import read as read_course
from privstats.inference import EffectRows, plot_balance
from privstats.release import Release
from privstats.workflows.tables.options import OfEffect
from privstats.workflows.tables.regressions import forest
from privstats.workflows.tables.result import TableResult


def effect(releases: Sequence[Release], options: OfEffect) -> TableResult:
    """Read effects, or a trial's looks, or the balance of both arms."""
    declared: Any = None if options.course is None else read_course(options.course)
    if getattr(declared, "looks", 1) > 1:
        return _looks(releases, declared, options)
    shown = balance if options.balance else outcomes if options.arms else effects
    return shown(inference.effects(releases, declared), options.alpha)


def _looks(releases: Sequence[Release], course: Any, options: OfEffect) -> TableResult:
    """Return a trial's looks, or the balance of the records of the first one."""
    table = inference.looks(releases, course)
    if options.balance or options.arms:  # outcomes by arm are refused
        return (balance if options.balance else outcomes)(table.at(table.rounds[0].number), options.alpha)
    return TableResult(table.summary(), table.to_rows(), table.reported)


def effects(table: EffectRows, alpha: float) -> TableResult:
    """Return effects by outcome and subgroup, without estimates that noise hides."""
    rows = table.to_rows(alpha)
    reported = any(bool(row["reported"]) for row in rows)
    if len(table) > 1 or table.analysis is not None:
        tests = (*(each.to_row() for each in table.interactions()), *(each.to_row() for each in table.verdicts()))
        return TableResult(table.summary(alpha), rows, reported, forest(table.named, alpha), tests=tests)
    (only,) = table
    return TableResult(only.summary(alpha), only.to_rows(alpha), reported, forest(only, alpha))


def balance(effects: EffectRows, alpha: float) -> TableResult:
    """Return both arms' columns and standardised differences."""
    table, *_ = effects
    balance = table.balance(alpha)
    draw = partial(plot_balance, balance)
    return TableResult(table.balance_summary(alpha), balance.to_rows(), bool(balance.reported.any()), draw)


def outcomes(effects: EffectRows, alpha: float) -> TableResult:
    """Return both arms by outcome, and the effects."""
    table = effects.by_arm(alpha)
    return TableResult(table.summary(), table.to_rows(), table.reported)
