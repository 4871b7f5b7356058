"""One trial of a study: partition the records, measure them once, and score every head at every promise.

Masks are omitted, because they cancel to the last bit; a study shows nothing about protocol or dropouts. A study
charges no ledger, so use only data that you may look at.
"""

from __future__ import annotations

import hashlib
import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from functools import partial
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray
from sklearn.discriminant_analysis import LinearDiscriminantAnalysis
from sklearn.linear_model import LinearRegression, LogisticRegression, RidgeCV
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from privstats import course as courses
from privstats import session
from privstats.contrib.sweep.axes import Axes, Partition, Point, plan_at
from privstats.contrib.sweep.points import NOTHING_RIGHT, noise_draw
from privstats.contrib.sweep.rivals import FederatedRival, Rival
from privstats.course import Centred, Course, Round, Rounds
from privstats.course.recipes import recipe_for
from privstats.dp import Privacy
from privstats.errors import AggregationError, MissingStatisticError, PlanError
from privstats.estimates.algebra import algebra_on
from privstats.extend.heads import Scores
from privstats.extend.support import Generator, seeded
from privstats.moments import exact_moments
from privstats.plan import Plan
from privstats.release import Release
from privstats.schema import predicted
from privstats.transforms import apply
from privstats.workflows.simulate import dirichlet_partition

Shards: TypeAlias = Sequence[tuple[Any, Any]]
"""``(X, y)`` of every client."""
_STRATA = 10
_ITERATIONS = 500
_CLASSIFIERS: Mapping[str, Callable[[], Any]] = {
    "scikit-learn LDA, pooled": LinearDiscriminantAnalysis,
    "logistic regression, pooled": lambda: make_pipeline(StandardScaler(), LogisticRegression(max_iter=_ITERATIONS)),
}
BASELINES: Mapping[str, Mapping[str, Callable[[], Any]]] = {
    "classes": _CLASSIFIERS,
    "parties": _CLASSIFIERS,
    "ridge": {
        "linear regression, pooled": LinearRegression,
        "scikit-learn ridge, pooled": lambda: RidgeCV(np.logspace(-6, 3, 19)),
    },
}
"""By task and name."""


@dataclass(frozen=True)
class BehindMean:
    """A head that reads the sums behind a noisy mean, both under the plan's promise (``Centred``).

    Example:
        >>> from privstats.contrib.sweep import BehindMean
        >>> BehindMean(ps.heads.LDA).make()
        LDA()
    """

    make: Callable[[], Any]

    def release(self, plan: Plan, shards: Shards, rng: Generator) -> Release | None:
        """Return the release behind the mean (the exact mean without DP), or None."""
        if plan.noise is not None:
            return played(Centred.within(plan), shards, rng)[-1]
        rows = np.concatenate([apply(plan.schema.transform, np.asarray(X, np.float64)) for X, _ in shards])
        return _aggregated(Centred.exactly(plan, rows), shards, rng)


def behind_means(heads: Mapping[str, Callable[[], Any]]) -> dict[str, Callable[[], BehindMean]]:
    """Return each head of one release again, behind a mean, as ``"NAME, centred"``.

    Example:
        >>> from privstats.contrib.sweep import behind_means
        >>> list(behind_means({"LDA": ps.heads.LDA, "RefinedSoftmax": ps.heads.RefinedSoftmax}))
        ['LDA, centred']
    """
    alone = {name: make for name, make in heads.items() if not ends_a_course(make())}
    return {f"{name}, centred": partial(BehindMean, make) for name, make in alone.items()}


def ends_a_course(head: Any) -> bool:
    """Return whether a head needs a course's releases."""
    return hasattr(head, "fit_releases")


def course_scores(head: Any, plan: Plan, shards: Shards, test: tuple[Any, Any], rng: Generator) -> Scores:
    """Score a head at the end of a course that meets the plan's promise.

    Without noise it is fitted on the records themselves. The score is 0 where the first release aborted.
    """
    if plan.noise is None:
        recipe_for(plan, 1, 1.0, head.rounds or 1)
        rows = np.concatenate([np.asarray(X, np.float64) for X, _ in shards])
        behind, others = (apply(plan.schema.transform, each) for each in (rows, np.asarray(test[0], np.float64)))
        return Scores.of(
            plan.schema, head.fit(behind, np.concatenate([np.asarray(y) for _, y in shards])), others, test[1]
        )
    of_classes = {name: getattr(head, name) for name in ("calibrated", "module") if hasattr(head, name)}
    releases = played(Rounds.within(plan, head.rounds, **of_classes), shards, rng)
    return Scores.of(plan.schema, head.fit_releases(releases), *test) if releases[0] else NOTHING_RIGHT


def played(course: Course, shards: Shards, rng: Generator) -> list[Release | None]:
    """Return a course's releases."""

    def release(round_: Round) -> Release | None:
        return _aggregated(round_.plan, shards, rng)

    return courses.run(course, release)


def _aggregated(plan: Plan, shards: Shards, rng: Generator) -> Release | None:
    parts = [exact_moments(plan.schema, *shard, published=plan.published) for shard in shards]
    try:
        return session.aggregate_unmasked(plan, parts, rng)
    except AggregationError:
        return None


@dataclass(frozen=True)
class Dataset:
    """The subject of a study: plan, axes, records, heads and seed.

    Attributes:
        train, test: ``(X, y)`` of the cohort's records, and of the records to score on.
        heads: functions by name; a head that ends a course, or a ``BehindMean``, spends the point's promise in total,
            and a ``Rival`` is trained on all records, or by the parties.
        device: where heads multiply and factor matrices; None for this machine's cores.
        trained: scores of the rivals, each trained once per process for all points that it does not depend on.
        even: sums of the parties of the latest even partition, which is the same in every replicate.
    """

    plan: Plan
    axes: Axes
    train: tuple[Any, Any]
    test: tuple[Any, Any]
    heads: Mapping[str, Callable[[], Any]]
    seed: int
    device: str | None = None
    trained: dict[tuple[object, ...], Scores] = field(default_factory=dict, init=False, repr=False, compare=False)
    even: dict[Partition, list[Any]] = field(default_factory=dict, init=False, repr=False, compare=False)

    @property
    def rivals(self) -> dict[str, Rival]:
        """Rivals, by name."""
        fitted = {name: head() for name, head in self.heads.items()}
        return {name: head for name, head in fitted.items() if isinstance(head, Rival)}


@dataclass(frozen=True)
class Trial:
    """One partition with one replicate's noise."""

    deal: Partition
    draw: int


@dataclass(frozen=True)
class Draw:
    """One score of one head from one release.

    Attributes:
        model, unit, epsilon: of the promise; ``"none"`` and None without noise.
        clients, alpha, clip_norm, dimension, statistics: of the partition; ``alpha`` None for an even one.
        draw: replicate of partition and noise, the same at every point.
        score: accuracy or R²; None where the statistics cannot feed the head.
        balanced, auc, one_class, sensitivity, specificity: as in ``Scores``.
        dropped: classes excluded by the minimum count.
        upload_bytes: a client's upload of the plan's own sums, or a federated rival's; 0 for pooled records.
        why: without a score, a sentence on the missing statistic.
    """

    model: str
    unit: str
    clients: int
    alpha: float | None
    clip_norm: float
    dimension: int
    statistics: str
    epsilon: float | None
    head: str
    draw: int
    score: float | None
    balanced: float | None
    auc: float | None = None
    one_class: bool = False
    dropped: int = 0
    upload_bytes: int = 0
    why: str = ""
    sensitivity: float | None = None
    specificity: float | None = None


def draws_of(subject: Dataset, job: Trial) -> tuple[Draw, ...]:
    """Return a job's scores. Without noise, heads are scored in the first replicate only, and rivals in each."""
    with algebra_on(subject.device):
        return tuple(_draws(subject, job))


def _draws(subject: Dataset, job: Trial) -> Iterator[Draw]:
    owners = _owners(subject, job)
    measured: dict[bool, list[Any]] = {}
    shards: dict[bool, Shards] = {}
    inputs = np.shape(subject.train[0])[1]
    for point in subject.axes.points(subject.plan, job.deal):
        heads = _taking_part(subject, point, job.draw)
        if not heads:
            continue
        plan = plan_at(subject.plan, point, inputs, subject.axes.records_per_client)
        of_parties = predicted(plan.schema) == "parties"  # a party may hold any number of records
        most = None if of_parties else getattr(plan.privacy, "max_records_per_client", None)
        limited = most is not None
        if limited not in measured:
            rows = [_sampled(owner, most, subject.seed, job.draw, k) for k, owner in enumerate(owners)]
            X, y = subject.train
            shards[limited] = [(X[index], y[index]) for index in rows]
            measured[limited] = _measured(subject, job.deal, plan, shards[limited], limited=limited)
        release = session.aggregate_unmasked(plan, measured[limited], noise_draw(subject.seed, job.draw))
        for name, head in heads.items():
            yield _scored(subject, job, point, release, shards[limited], name, head)


def _measured(subject: Dataset, deal: Partition, plan: Plan, shards: Shards, *, limited: bool) -> list[Any]:
    """Return the sums of each party; those of an even partition of all records once for all replicates."""
    if limited or deal.alpha is not None:
        return [exact_moments(plan.schema, *shard) for shard in shards]
    if deal not in subject.even:
        subject.even.clear()
        subject.even[deal] = [exact_moments(plan.schema, *shard) for shard in shards]
    return subject.even[deal]


def _taking_part(subject: Dataset, point: Point, draw: int) -> dict[str, Any]:
    """Return fresh heads of a point. Without noise a head's score is the same in every replicate, a rival's is not."""
    exact = math.isinf(point.epsilon)
    heads = {name: make() for name, make in subject.heads.items()}
    rivals = {name: head for name, head in heads.items() if isinstance(head, Rival)}
    return {
        name: head
        for name, head in heads.items()
        if (rivals[name].private or exact if name in rivals else not (exact and draw))
    }


def _scored(subject: Dataset, job: Trial, point: Point, release: Release, shards: Shards, name: str, head: Any) -> Draw:
    rival = isinstance(head, Rival)
    if rival:
        scores, why = _score_rival(subject, job, release.plan, shards, name, head), ""
    elif ends_a_course(head):
        scores, why = _score_course(release.plan, head, shards, subject.test, noise_draw(subject.seed, job.draw))
    elif isinstance(head, BehindMean):
        scores, why = _score_behind(release.plan, head, shards, subject.test, noise_draw(subject.seed, job.draw))
    else:
        scores, why = _score(release, head, subject.test)
    schema = release.plan.schema
    return Draw(
        model=point.model,
        unit=point.unit,
        clients=job.deal.clients,
        alpha=job.deal.alpha,
        clip_norm=job.deal.clip_norm,
        dimension=schema.features,
        statistics=schema.statistics,
        epsilon=None if math.isinf(point.epsilon) else point.epsilon,
        head=name,
        draw=job.draw,
        dropped=0 if rival else len(release.suppressed),
        upload_bytes=head.upload_bytes(release.plan) if rival else release.plan.masking.upload_bytes,
        why=why,
        **asdict(scores),
    )


def _score(release: Release, head: Any, test: tuple[Any, Any]) -> tuple[Scores, str]:
    schema = release.plan.schema
    if schema.suppressible and len(release.suppressed) == schema.sizes["class"]:
        return NOTHING_RIGHT, ""  # no class remains to predict
    try:
        site = {"X_site": test[0]} if predicted(schema) == "parties" else {}  # the serving site's own rows
        return Scores.of(schema, head.fit_release(release, **site), *test), ""
    except MissingStatisticError as error:
        return Scores(None), str(error)


def _score_course(plan: Plan, head: Any, shards: Shards, test: tuple[Any, Any], rng: Generator) -> tuple[Scores, str]:
    try:
        return course_scores(head, plan, shards, test, rng), ""
    except PlanError as error:
        return Scores(None), str(error)


def _score_behind(
    plan: Plan, head: BehindMean, shards: Shards, test: tuple[Any, Any], rng: Generator
) -> tuple[Scores, str]:
    try:
        release = head.release(plan, shards, rng)
    except PlanError as error:
        return Scores(None), str(error)
    return _score(release, head.make(), test) if release else (NOTHING_RIGHT, "")


def _score_rival(subject: Dataset, job: Trial, plan: Plan, shards: Shards, name: str, head: Rival) -> Scores:
    promise = (plan.privacy.epsilon, plan.privacy.unit) if isinstance(plan.privacy, Privacy) else (math.inf, "none")
    parties = (job.deal.clients, job.deal.alpha) if isinstance(head, FederatedRival) else ()
    key = (name, job.draw, *promise, job.deal.clip_norm, plan.schema.features, *parties)
    if key not in subject.trained:
        seed = int.from_bytes(noise_draw(subject.seed, job.draw).bytes(7), "big")
        subject.trained[key] = (
            head.scores_of_parties(plan, shards, subject.test, seed)
            if isinstance(head, FederatedRival)
            else head.scores(plan, subject.train, subject.test, seed)
        )
    return subject.trained[key]


def _owners(subject: Dataset, job: Trial) -> list[NDArray[np.int64]]:
    y = np.asarray(subject.train[1])
    if job.deal.alpha is None:
        return [np.arange(k, len(y), job.deal.clients) for k in range(job.deal.clients)]
    if predicted(subject.plan.schema) == "ridge":
        first = y.reshape(len(y), -1)[:, 0]
        y = np.searchsorted(np.quantile(first, np.linspace(0, 1, _STRATA + 1)[1:-1]), first)
    rng = _stream("partition", subject.seed, job.draw)
    return list(dirichlet_partition(y, job.deal.clients, job.deal.alpha, rng))


def _sampled(owner: NDArray[np.int64], most: int | None, seed: int, draw: int, client: int) -> NDArray[np.int64]:
    if most is None or len(owner) <= most:
        return owner
    keys = _stream(f"sample {client}", seed, draw).uint64(len(owner))
    return owner[np.sort(np.argsort(keys, kind="stable")[:most])]


def _stream(what: str, seed: int, draw: int) -> Generator:
    name = hashlib.sha256(f"{what}/{seed}/{draw}".encode()).digest()
    return seeded(int.from_bytes(name[:8], "big"))


def baselines(plan: Plan, train: tuple[Any, Any], test: tuple[Any, Any], tick: Callable[[], None]) -> dict[str, float]:
    """Return baselines' scores by name, after the plan's transform."""
    maps = plan.schema.transform
    X, X_test = (apply(maps, np.asarray(rows, np.float64)) for rows in (train[0], test[0]))
    out = {}
    for name, model in BASELINES[predicted(plan.schema)].items():
        out[name] = float(model().fit(X, train[1]).score(X_test, test[1]))
        tick()
    return out
