"""One rule for every call that spends privacy: a charge is given, or the word ``"uncharged"`` is said."""

import importlib
import inspect
import pkgutil
from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

import privstats as ps
from privstats import session
from privstats.course.alone import single_party_plan
from privstats.errors import LedgerError
from privstats.heads.registry import HEADS
from privstats.randomness import seeded
from privstats.secagg import Identity, Roster
from tests.heads.conftest import quick

X = np.eye(4)[np.arange(40) % 3] + 0.01
Y = np.arange(40) % 3
PROMISE = {"epsilon": 1.0, "delta": 1e-5, "adjacency": "replace-one"}
SCHEMA = ps.ClassSchema(3, 4, "NAB", clip_norm=2.0)
PRIVACY = ps.Privacy(model="central", unit="record", **PROMISE)


def doors() -> Iterator[tuple[str, inspect.Parameter]]:
    """Every function of the library with a parameter that says where something is charged."""
    for module in pkgutil.walk_packages(ps.__path__, "privstats."):
        if module.name.endswith("__main__"):
            continue
        for name, value in vars(importlib.import_module(module.name)).items():
            members = vars(value).items() if inspect.isclass(value) else [(name, value)]
            for member, function in members:
                if not inspect.isfunction(function) or function.__module__ != module.name:
                    continue
                for parameter in inspect.signature(function).parameters.values():
                    if str(parameter.annotation).endswith(("Paid", "Charging")):  # annotations are text
                        yield f"{module.name}.{name}.{member}", parameter


def test_no_function_has_another_default_than_that_nobody_has_said_it():
    found = list(doors())
    assert len(found) >= 9  # client, release, the journal's, private_release(s), and four fit_private
    defaults = {name: parameter.default for name, parameter in found if parameter.default is not parameter.empty}
    assert {name: default for name, default in defaults.items() if default is not None} == {}


def client(**said: Any) -> Any:
    first, second, server = (Identity.generate(seeded(place).bytes) for place in range(3))
    roster = Roster((first.public, second.public), server=server.public)
    plan = single_party_plan(SCHEMA, PRIVACY)
    return session.client(plan, ps.measure(SCHEMA, X, Y), index=0, identity=first, roster=roster, **said)


def release(**said: Any) -> Any:
    plan = single_party_plan(SCHEMA, PRIVACY)
    return session.release(plan, plan.ring.zeros(), (0, 1), **said)


def private_releases(**said: Any) -> Any:
    course = ps.Rounds.within(
        single_party_plan(replace(SCHEMA, clip_norm=1.0, transform=(ps.transforms.UnitNorm(),)), PRIVACY), 1
    )
    return ps.private_releases(course, X, Y, **said)


def fit_private(name: str) -> Callable[..., Any]:
    terms: dict[str, Any] = {"target_bound": 2.0} if HEADS[name].task == "ridge" else {"classes": range(3)}
    norm = 1.0 if name.startswith("Refined") else 2.0
    return lambda **said: quick(name).fit_private(X, Y, **PROMISE, clip_norm=norm, **terms, **said)


CALLS: dict[str, tuple[Callable[..., Any], str]] = {
    "session.client": (client, "charge"),
    "session.release": (release, "charge"),
    "private_release": (lambda **said: ps.private_release(SCHEMA, PRIVACY, X, Y, **said), "ledger"),
    "private_releases": (private_releases, "ledger"),
    **{f"{name}.fit_private": (fit_private(name), "ledger") for name in HEADS if HEADS[name].task != "parties"},
}


@pytest.mark.parametrize("call", CALLS)
def test_nothing_is_drawn_before_a_call_says_where_it_is_charged(call, monkeypatch):
    """The sentence names the word that the call takes instead of a ledger."""
    spend, parameter = CALLS[call]
    monkeypatch.setattr(ps.dp, "draw_central", lambda *_: pytest.fail("noise was drawn"))
    with pytest.raises(LedgerError, match=f"no ledger is given to record that: .*{parameter}='uncharged'"):
        spend()


@pytest.mark.parametrize("call", ["session.client", "session.release", "private_release", "LDA.fit_private"])
def test_the_word_is_always_accepted(call):
    spend, parameter = CALLS[call]
    spend(**{parameter: "uncharged"})
