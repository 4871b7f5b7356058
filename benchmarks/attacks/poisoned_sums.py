"""Measure what one lying client of twenty does to a model, by what its report must prove: nothing, a norm, moments, or
real records.

    OMP_NUM_THREADS=1 python -m benchmarks.attacks.poisoned_sums --save

Every lie is the worst that a climb finds which knows all honest sums and the test records, and is then sent over the
real machines; the accuracy is that of the head from the session's own release. A lie that its level does not admit
would be refused, and its accuracy would be that of a session without the liar.
"""

from __future__ import annotations

import argparse
import warnings
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.datasets import load_breast_cancer

import privstats as ps
from benchmarks.data import tasks
from benchmarks.measuring import Row, Rows, Tables, command
from privstats import heads
from privstats.course import Rounds, run
from privstats.encoding import flatten
from privstats.plan import Validity
from privstats.randomness import seeded
from privstats.secagg import Identity
from threat_models.attacks.admissible_lies import Level, Lie, Scene, worst
from threat_models.attacks.poisoned_sums import beyond, classified, sent, signed

CLIENTS, LIAR, SEARCHED = 20, 0, 2_000
LEVELS: tuple[Level, ...] = ("moments", "records", "norm", "none")
"""In the order of the climbs: whole records are rounded fractional ones, and anything may be what has a norm."""
SHOWN = {"moments": "moments", "records": "real records", "norm": "norm", "none": "none"}
SETS = ("digits", "fmnist", "banking77")
STEPS = {"digits": 2_000, "few": 2_000, "fmnist": 300, "banking77": 300, "breast cancer": 2_000}
ROUNDS, EPSILON = 4, 8.0
PANEL = tuple(Identity.generate(seeded(place).bytes).public.hex() for place in range(2))

Vector = NDArray[np.int64]
Model = Callable[[ps.Release], float]
LieInRound = Callable[[ps.Plan, list[Vector]], Vector]


@dataclass(frozen=True, eq=False)
class Study:
    """Twenty clients' records, dealt in turn, and the model that follows from a release of their sums.

    Attributes:
        schema: of the sums.
        X, y: all records.
        test: those that the model is judged on; the climb looks at the first of them.
        searched, judged: the accuracy in the climb, and on all test records.
    """

    schema: Any
    X: NDArray[np.float64]
    y: NDArray[Any]
    test: tuple[NDArray[np.float64], NDArray[Any]]
    searched: Model
    judged: Model

    @property
    def most(self) -> int:
        """The records of the largest client."""
        return -(-len(self.X) // CLIENTS)

    def plan(self, level: Level) -> ps.Plan:
        """The plan of a session whose reports prove so much; whole records prove moments."""
        validity = None if level == "none" else Validity("norm" if level == "norm" else "moments", self.most)
        return plan_of(self.schema, len(self.X), ps.NoPrivacy(), validity)

    def parts(self, plan: ps.Plan | None = None) -> list[Any]:
        """Return the clients' measurements, in a round at the values that its plan publishes."""
        schema, values = (self.schema, None) if plan is None else (plan.schema, plan.published)
        rows = [(self.X[k::CLIENTS], self.y[k::CLIENTS]) for k in range(CLIENTS)]
        return [ps.measure(schema, X, y, published=values) for X, y in rows]


def plan_of(schema: Any, records: int, privacy: Any, validity: Validity | None) -> ps.Plan:
    """A plan of twenty clients, a leader and one helper."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        cohort = ps.Cohort(CLIENTS, CLIENTS - 2, records, 1)
        return ps.Plan(schema=schema, cohort=cohort, privacy=privacy, protocol="split", panel=PANEL, validity=validity)


def tables(options: argparse.Namespace) -> Tables:
    """Heads of one release, then refinement rounds, then lies beyond the statement."""
    rows, first = [], None
    for data, head, study in studies(quick=options.quick):
        steps = 40 if options.quick else STEPS[data]
        found = climbs(study, steps)
        first = (study, found) if (data, head) == ("digits", "LDA") else first
        rows.append({"data": data, "head": head, **facts(study), **measured(study, found)})
    yield "worst accuracy that one liar of twenty leaves, %", rows
    assert first is not None
    yield "the same after refinement rounds, digits, %", [refined(*first, rounds=1 if options.quick else ROUNDS)]
    yield "lies beyond the statement, digits: reports refused", refusals(first[0])


def studies(*, quick: bool) -> Iterator[tuple[str, str, Study]]:
    """Data, head and study."""
    for task in tasks(bundled_only=quick):
        if task.name in SETS:
            X, X_test, y, y_test = task.transformed()
            schema = ps.ClassSchema(int(y.max()) + 1, X.shape[1], "NAB", clip_norm=1.0)
            order = np.random.default_rng(0).permutation(len(X_test))
            X_test, y_test = X_test[order], y_test[order]
            for kind in (heads.RidgeClassifier, heads.LDA)[0 if task.name == "digits" else 1 :]:
                models = classified(X_test[:SEARCHED], y_test[:SEARCHED], kind), classified(X_test, y_test, kind)
                yield task.name, kind.__name__, Study(schema, X, y, (X_test, y_test), *models)
            if task.name == "digits" and not quick:
                kept = small_classes(y)
                yield "few", "LDA", Study(schema, X[kept], y[kept], (X_test, y_test), *models)
    yield "breast cancer", "Ridge, one target", regression()


def small_classes(y: NDArray[Any]) -> NDArray[np.intp]:
    """The records of which classes 5 to 9 keep six each."""
    rank = np.array([np.count_nonzero(y[:place] == label) for place, label in enumerate(y)])
    return np.flatnonzero((y < 5) | (rank < 6))


def regression() -> Study:
    """A regression on targets of -1 and 1, judged by their sign."""
    X, y = load_breast_cancer(return_X_y=True)
    X = X / np.abs(X).max(axis=0)
    X = np.concatenate([X - X.mean(axis=0), np.full((len(X), 1), 0.5)], axis=1)
    X, y = X / np.linalg.norm(X, axis=1).max(), 2.0 * y - 1.0
    order = np.random.default_rng(0).permutation(len(X))
    test, train = order[:140], order[140:]
    model = signed(X[test], y[test], len(train))
    schema = ps.RidgeSchema(X.shape[1], clip_norm=1.0, target_bound=1.0)
    return Study(schema, X[train], y[train], (X[test], y[test]), model, model)


def climbs(study: Study, steps: int) -> Mapping[Level, Lie]:
    """The worst lie found for each level; each climb begins also with what the ones before found."""
    vectors = [flatten(part) for part in study.parts()]
    test = study.test[0][:SEARCHED], study.test[1][:SEARCHED]
    scene = Scene(study.plan("none"), np.sum(vectors[1:], axis=0), vectors[LIAR], study.searched, test)
    rng, found = seeded(0), dict[Level, Lie]()
    for level in LEVELS:
        known = [] if level == "norm" else list(found.values())
        found[level] = worst(scene, level, study.most, steps, rng, known)
    accuracy = {level: scene.accuracy(lie.vector(study.schema)) for level, lie in found.items()}
    if accuracy["records"] < accuracy["moments"]:  # whole records are fractional ones too
        found["moments"] = found["records"]
    return found


def facts(study: Study) -> Row:
    """Return the number of records, and the result without a lie."""
    plan, parts = study.plan("none"), [flatten(part) for part in study.parts()]
    everybody = tuple(range(CLIENTS))
    whole = ps.Release(plan, np.sum(parts, axis=0), everybody)
    without = ps.Release(plan, np.sum(parts[1:], axis=0), everybody[1:])
    return {
        "records in all": len(study.X),
        "of the liar": study.most,
        "honest": 100 * study.judged(whole),
        "without the liar": 100 * study.judged(without),
    }


def measured(study: Study, lies: Mapping[Level, Lie]) -> Row:
    """The accuracy with each lie, from a session of the real machines under a plan of its level."""
    out = dict[str, Any]()
    for level, lie in lies.items():
        plan, vector = study.plan(level), lie.vector(study.schema)
        end = sent(plan, study.parts(), {LIAR: vector}, seeded(1))
        if end.total is None or LIAR not in end.survivors:
            raise SystemExit(f"a lie of level {level} was refused: the climb has left what its level admits")
        out[SHOWN[level]] = 100 * study.judged(ps.session.release(plan, plan.ring.encode(end.total), end.survivors))
    return out


def refusals(study: Study) -> Rows:
    """A lie of each kind under each level: whether it enters."""
    plans = {level: study.plan(level) for level in ("none", "norm", "moments")}
    lies = beyond(study.schema, flatten(study.parts()[LIAR]))
    return [
        {"lie": name, **{level: _end(plan, study.parts(), lie) for level, plan in plans.items()}}
        for name, lie in lies.items()
    ]


def _end(plan: ps.Plan, parts: list[Any], lie: Vector) -> str:
    return "taken" if LIAR in sent(plan, parts, {LIAR: lie}, seeded(2)).survivors else "refused"


def refined(study: Study, lies: Mapping[Level, Lie], rounds: int) -> Row:
    """The accuracy of a softmax after rounds whose reports prove their norm, for the worst of a few lies in them."""
    most, row = study.most, {"rounds": rounds, "epsilon": EPSILON, "honest": course(study, "norm", rounds, None)}
    ways: list[LieInRound] = [
        partial(of_norm, most=most, sign=sign, kappa=kappa) for sign in (-1, 1) for kappa in (0, 1)
    ]
    invented: list[LieInRound] = [partial(of_records, lie=lies["records"])]
    tried: Mapping[Level, list[LieInRound]] = {
        "records": invented, "moments": [*invented, *ways], "norm": ways, "none": [*ways, far_back]
    }  # fmt: skip
    for level, lie_of in tried.items():
        first = lies[level].vector(study.schema)
        row[SHOWN[level]] = min(course(study, level, rounds, each, first) for each in lie_of)
    row["norm"] = min(row["norm"], row["moments"])  # whose first sum has the norm too, and whose rounds prove it
    return row


def far_back(plan: ps.Plan, parts: list[Vector]) -> Vector:  # noqa: ARG001
    """A hundred times the others' sums, the other way."""
    return np.asarray(-100 * np.sum(parts[1:], axis=0))


def of_norm(plan: ps.Plan, parts: list[Vector], *, most: int, sign: int, kappa: int) -> Vector:
    """The largest gradient of so many records, along the others' sum or against it, and the least or most kappa."""
    bounds = {row.letter: most * row.bound(plan.schema.grid_steps) for row in plan.schema.sent}
    (g, last), sums = plan.layout.segments, np.sum(parts[1:], axis=0)[: plan.layout.segments[0].size]
    gradient = np.trunc(0.9999 * sign * bounds[g.statistic] * sums / np.linalg.norm(sums)).astype(np.int64)
    return np.concatenate([gradient, np.full(last.size, kappa * bounds[last.statistic], np.int64)])


def of_records(plan: ps.Plan, parts: list[Vector], *, lie: Lie) -> Vector:  # noqa: ARG001
    """Return the contribution of the first sum's invented records to a round."""
    times = lie.weights[0].astype(np.int64)
    X, y = np.repeat(lie.X, times, axis=0), np.repeat(lie.y, times)
    return flatten(ps.measure(plan.schema, X, y, published=plan.published))


def course(study: Study, level: Level, rounds: int, lie_of: LieInRound | None, first: Vector | None = None) -> float:
    """Accuracy after a course over the real machines; every sum has one liar in it, unless ``lie_of`` is None."""
    privacy = ps.Privacy(model="central", unit="record", adjacency="add-remove", epsilon=EPSILON, delta=1e-5)
    rng = seeded(3)

    def released(node: Any) -> ps.Release:
        plan, parts = node.plan, study.parts(node.plan)
        vectors = [flatten(part) for part in parts]
        lies = dict[int, Vector]()
        if lie_of is not None and first is not None:
            lies[LIAR] = first if plan.published is None else lie_of(plan, vectors)
        end = sent(plan, parts, lies, rng)
        if end.total is None or LIAR not in end.survivors:
            raise SystemExit(f"a lie of level {level} was refused in a round: the climb has left what it admits")
        total = plan.ring.encode(end.total)
        return ps.session.release(plan, total, end.survivors, rng, charge="uncharged", allow_reproducible=True)

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        whole = plan_of(study.schema, len(study.X), privacy, study.plan(level).validity)
        head = heads.RefinedSoftmax().fit_releases(run(Rounds.within(whole, rounds), released))
        return 100 * float(head.score(*study.test))


if __name__ == "__main__":
    command("attacks.poisoned_sums", __doc__, tables)
