"""Noise is drawn anew for every release: at every place that draws it, and from every generator that is made for it.

Two releases of the same sums leave two residuals. Of fresh noise their correlation r is one of n independent pairs, so
sqrt(n) r is a standard normal draw and passes 4.9 once in a million; of noise that is used again r is 1, and of noise
half of which is used again sqrt(n) r is above 7 in 999 cases of 1000 for the n = 400 entries and more here.
"""

import ast
import itertools
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import privstats as ps
from privstats import session
from privstats.contrib.streams.stream import weighed_release
from privstats.encoding import flatten
from privstats.engines.journal import JournaledServer
from privstats.engines.loopback import run
from privstats.randomness import secure, seeded
from privstats.secagg import Identity
from privstats.secagg.upload import messages
from privstats.session.client_updates import ClientUpdates
from tests import made
from tests.project.core_graph import DRAWS
from tests.without import WHOLE

ROOT = Path(ps.__file__).parent
LIMIT = 4.9

SCHEMA = ps.ClassSchema(4, 24, "NAB", 1.0)
COHORT = ps.Cohort(5, 5, 500, colluders=0)
Draws = Callable[[Path], Sequence[np.ndarray]]


PANEL = {"protocol": "split", "panel": [Identity.generate(seeded(seat).bytes).public.hex() for seat in range(3)]}


def plan_of(model: str, schema: Any = SCHEMA, cohort: ps.Cohort = COHORT) -> ps.Plan:
    promise = ps.Privacy(model=model, unit="record", adjacency="add-remove", epsilon=4.0, delta=1e-5)
    return ps.Plan(schema=schema, cohort=cohort, privacy=promise, **(PANEL if model == "panel" else {}))


RNG = np.random.default_rng(0)
X, Y = RNG.normal(size=(100, 24)), RNG.integers(0, 4, 100)
SHARES = [ps.measure(SCHEMA, X[k::5], Y[k::5]) for k in range(5)]
EXACT = sum(flatten(each) for each in SHARES)


def in_units(plan: ps.Plan, residual: np.ndarray) -> np.ndarray:
    """Residuals of all segments in standard deviations of the noise."""
    sigmas = [plan.noise.share_sigma(segment) for segment in plan.layout.segments]
    return residual / np.repeat(sigmas, [segment.size for segment in plan.layout.segments])


def two_contributions(model: str) -> Draws:
    def drawn(_: Path) -> list[np.ndarray]:
        plan, one = plan_of(model), SHARES[0]
        return [in_units(plan, session.contribution(plan, one).take().lift() - flatten(one)) for _ in range(2)]

    return drawn


def two_of_one_total(model: str) -> Draws:
    def drawn(_: Path) -> list[np.ndarray]:
        plan = plan_of(model)
        total = plan.ring.encode(EXACT)
        releases = [session.release(plan, total, tuple(range(5)), charge="uncharged") for _ in range(2)]
        return [in_units(plan, release.vector - EXACT) for release in releases]

    return drawn


def three_of_a_helper(_: Path) -> list[np.ndarray]:
    """Two draws of one drawer, and one of another."""
    plan = plan_of("panel")
    drawers = [session.helper_noise(plan) for _ in range(2)]
    return [in_units(plan, draw(secure().bytes(32)).lift()) for draw in (drawers[0], *drawers)]


def four_answers(_: Path) -> list[np.ndarray]:
    """Of both helpers' machines, in two runs of the same sums: what they add beyond their streams."""
    plan, found = plan_of("panel"), []
    for _ in range(2):
        crew = session.local_parties(plan, SHARES)
        for helper in crew.helpers:
            streams = helper._scheme.answer  # what a helper says without its noise

            def kept(pieces: Any, out: memoryview, streams: Any = streams) -> None:
                streams(pieces, out)
                found.append(-plan.ring.unpack(out).lift())

            helper._scheme.answer = kept
        run(crew.server, crew.clients, helpers=crew.helpers)
        for place, helper in enumerate(crew.helpers, start=len(found) - len(crew.helpers)):
            answer = messages.decode(helper.answer, messages.Reveal, crew.server.parameters, helper._context).answer
            total = plan.ring.unpack(answer)
            total.add(plan.ring.encode(found[place]))
            found[place] = in_units(plan, total.lift())
    return found


def two_pure(_: Path) -> list[np.ndarray]:
    """Releases of a plan with delta 0."""
    schema = ps.ClassSchema(4, 100, "NA", 1.0)
    plan = plan_of("central", schema)
    plan = replace(plan, privacy=replace(plan.privacy, delta=0.0))
    total, sigmas = plan.ring.zeros(), [plan.noise.grid_sigma(segment) for segment in plan.layout.segments]
    drawn = [session.release(plan, total, tuple(range(5)), charge="uncharged").vector for _ in range(2)]
    return [each / np.repeat(sigmas, [segment.size for segment in plan.layout.segments]) for each in drawn]


def two_in_clear(_: Path) -> list[np.ndarray]:
    plan = plan_of("distributed")
    return [in_units(plan, session.aggregate_unmasked(plan, SHARES).vector - EXACT) for _ in range(2)]


def two_simulations(_: Path) -> list[np.ndarray]:
    plan = plan_of("distributed")
    return [in_units(plan, ps.simulate(plan, SHARES).vector - EXACT) for _ in range(2)]


def two_with_layers(_: Path) -> list[np.ndarray]:
    """Shares drawn for three survivors, of which all five open what is too much."""
    plan = replace(plan_of("distributed", cohort=ps.Cohort(5, 3, 500, colluders=0)), excess_noise="removed")
    releases = [ps.simulate(plan, SHARES) for _ in range(2)]
    assert all(release.left_for for release in releases)
    return [in_units(plan, release.vector - EXACT) for release in releases]


def two_alone(_: Path) -> list[np.ndarray]:
    terms = {"privacy": plan_of("central").privacy, "X": X, "y": Y, "ledger": "uncharged"}
    releases = [ps.private_release(SCHEMA, **terms) for _ in range(2)]
    return [in_units(release.plan, release.vector - EXACT) for release in releases]


def two_updates(place: Path) -> list[np.ndarray]:
    """Of one client of somebody else's rounds, whose update is nothing."""
    updates = ClientUpdates({"W": (20, 20)}, clip_norm=1.0, epsilon=8.0, delta=1e-5, rounds=2)
    ledger = made.ledger(place / "ledger", "weights", epsilon=8.0, unit="client", adjacency="replace-one")
    sent = [updates.released({"W": np.zeros((20, 20))}, ledger, "weights")["W"] for _ in range(2)]
    return [update.ravel() / updates.sigma for update in sent]


def two_courses(_: Path) -> list[np.ndarray]:
    """The first nodes of a course that one party runs by itself, twice over."""
    course = ps.Rounds.within(plan_of("central", ps.ClassSchema(4, 24, "NAB", 1.0), ps.Cohort(2, 2, 500)))
    releases = [ps.private_releases(course, X, Y, ledger="uncharged")[0] for _ in range(2)]
    return [in_units(release.plan, release.vector - EXACT) for release in releases]


def two_journals(place: Path) -> list[np.ndarray]:
    """Of one run and one sum: nothing but the journals' seeds is different."""
    plan, found = plan_of("central"), []
    for name in ("one", "two"):
        crew = session.local_parties(plan, SHARES, seeded(0))
        with JournaledServer.create(place / name, b"k" * 32, crew.server) as server:
            run(server, crew.clients)
            found.append(in_units(plan, server.release(plan, "uncharged").vector - EXACT))
    return found


def epochs_weighed(_: Path) -> list[np.ndarray]:
    """Epochs of one weighed stream, no record of which changes: integers of the weighed sum, and noise."""
    stream = ps.Stream(plan_of("central"), 3, "square-root")
    plan, seed = stream.first, secure().bytes(32)
    nothing = (plan.ring.zeros(), tuple(range(5)))
    releases = [weighed_release(stream, seed, [nothing] * count) for count in (1, 2, 3)]
    return [in_units(plan, release.vector) for release in releases]


DOORS: dict[str, Draws] = {
    "a client's share": two_contributions("distributed"),
    "a client's local noise": two_contributions("local"),
    "a server's release": two_of_one_total("central"),
    "a panel leader's release": two_of_one_total("panel"),
    "a release with delta 0": two_pure,
    "a helper's noise": three_of_a_helper,
    "helpers' answers": four_answers,
    "a sum in the clear": two_in_clear,
    "a simulation": two_simulations,
    "a simulation that opens layers": two_with_layers,
    "one party alone": two_alone,
    "a course of one party": two_courses,
    "a server with a journal": two_journals,
    "epochs of a weighed stream": epochs_weighed,
    "a client's update": two_updates,
}

PLACES = {  # every call that draws noise or makes a generator, and the doors through which it is reached here
    "dp/mechanisms.py: sampler": {"a client's share", "a server's release"},
    "dp/mechanisms.py: discrete_laplace": {"a release with delta 0"},
    "dp/mechanisms.py: draw_layers": {"a simulation that opens layers"},
    "session/noise.py: draw_layers": {"a simulation that opens layers"},
    "session/noise.py: draw_share": {
        "a client's update",
        "a client's share",
        "a client's local noise",
        "a sum in the clear",
        "a simulation",
    },
    "session/noise.py: Generator": {"a simulation that opens layers"},
    "session/noise.py: draw_member": {"a helper's noise", "helpers' answers", "a panel leader's release"},
    "session/noise.py: bound_to": {"a helper's noise", "helpers' answers"},
    "session/noise.py: draw_central": {"a server's release", "one party alone", "a course of one party"},
    "session/noise.py: rounded_gaussian": {"epochs of a weighed stream"},
    "contrib/streams/stream.py: bound_to": {"epochs of a weighed stream"},
    "engines/journal/server_view.py: bound_to": {"a server with a journal"},
    "randomness.py: Generator": {"a server's release"},
    "randomness.py: secure": {"a server's release"},
    "dp/samplers.py: spawn": {"a server's release"},
}
_MAKING = {"Generator", "bound_to", "secure", "spawn"}
_NUMPYS_OWN = "np.random.Generator(np.random.PCG64("  # of heads, behind the release


@pytest.mark.parametrize("door", DOORS)
def test_two_releases_of_the_same_sums_have_noise_of_their_own(door, tmp_path):
    residuals = DOORS[door](tmp_path)
    for one, other in itertools.combinations(residuals, 2):
        assert one.size >= 400
        assert min(one.std(), other.std()) > 0.5
        assert abs(correlated(one, other)) < LIMIT


def correlated(one: np.ndarray, other: np.ndarray) -> float:
    """sqrt(n) times the correlation: a standard normal draw for independent noise."""
    return float(one @ other / (np.linalg.norm(one) * np.linalg.norm(other)) * np.sqrt(one.size))


@pytest.mark.parametrize(("again", "seen"), [(0.0, False), (0.5, True), (1.0, True)])
def test_noise_that_is_used_again_is_seen_in_999_cases_of_1000(again, seen):
    rng = np.random.default_rng(1)
    draws = rng.standard_normal((2000, 3, 400))
    kept, own = np.sqrt(again), np.sqrt(1 - again)
    found = [abs(correlated(kept * a + own * b, kept * a + own * c)) > LIMIT for a, b, c in draws]
    assert np.mean(found) == 0.0 if not seen else np.mean(found) > 0.999


@pytest.mark.ci
@WHOLE
def test_every_place_that_draws_noise_is_reached_here():
    """A new place needs a door through which two releases are drawn, and its line in PLACES."""
    assert called() == set(PLACES)
    assert set().union(*PLACES.values()) == set(DOORS)


def called() -> set[str]:
    """File and name of every call in the library that draws noise or makes a generator."""
    found = set()
    for file in sorted(ROOT.rglob("*.py")):
        for node in ast.walk(ast.parse(file.read_text("utf-8"))):
            if isinstance(node, ast.Call):
                name = node.func.attr if isinstance(node.func, ast.Attribute) else getattr(node.func, "id", "")
                if name in DRAWS | _MAKING and not ast.unparse(node).startswith(_NUMPYS_OWN):
                    found.add(f"{file.relative_to(ROOT).as_posix()}: {name}")
    return found
