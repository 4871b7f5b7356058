"""A study: heads over axes of plans, with repeated noise, in several processes, with a checkpoint file.

One seed yields identical bytes, whatever the interruptions.
"""

from __future__ import annotations

import hashlib
import math
import multiprocessing
import os
import platform
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ProcessPoolExecutor, as_completed
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from importlib.metadata import version
from statistics import fmean, stdev
from typing import Any

import numpy as np
from scipy.special import stdtrit
from threadpoolctl import threadpool_limits

from privstats.contrib.sweep.axes import AXES, Axes, plan_at, with_quantile_cuts
from privstats.contrib.sweep.draws import BehindMean, Dataset, Draw, Trial, draws_of
from privstats.contrib.sweep.draws import baselines as pooled_models
from privstats.contrib.sweep.frame import Frame
from privstats.contrib.sweep.points import metric
from privstats.contrib.sweep.rivals import Rival, rivals
from privstats.errors import DataError
from privstats.estimates.algebra import algebra_on
from privstats.extend.heads import HEADS, Entry
from privstats.extend.records import Codes, named_target, ordered_columns
from privstats.extend.support import ResultCache, json_text, progress_bar
from privstats.moments import exact_moments, warn_if_clipped
from privstats.plan import Plan
from privstats.records.table import codes_of
from privstats.schema import predicted
from privstats.version import __version__

KEPT = "draws.jsonl"
"""The file in which an unfinished study keeps its draws."""

_POINT = (*AXES, "head")
_MEANS = ("balanced", "auc", "sensitivity", "specificity")
_DRAWS = (*_POINT, "draw", "score", *_MEANS, "one_class", "dropped", "upload_bytes")
_SUMMARY = (*_POINT, "draws", "mean", "deviation", "low", "high", *_MEANS, "one_class", "dropped", "upload_bytes")
_PACKAGES = ("numpy", "scipy", "scikit-learn")


def _mean(values: Iterable[float | None]) -> float | None:
    there = [each for each in values if each is not None]
    return fmean(there) if there else None


@dataclass(frozen=True)
class Study:
    """The result of a study.

    Attributes:
        draws: one row per point, head and replicate.
        baselines: scores of models of the pooled records, without privacy.
        rivals: by row name; ``private`` states whether one meets the plan's promise.
        missing: sentences on heads that lack statistics.
        sizes: records and columns of both parts, and classes or targets.
        data: SHA-256 of all four arrays.
        confidence: of the intervals in :attr:`summary`.
        device: where heads multiplied and factored matrices; None for this machine's cores.

    Example:
        >>> from privstats.contrib.sweep import study
        >>> X, y = np.random.default_rng(0).normal(size=(200, 2)), np.arange(200) % 2
        >>> schema = ps.ClassSchema(2, 2, "NAB", clip_norm=8.0)
        >>> privacy = ps.Privacy(model="central", unit="record", adjacency="add-remove", epsilon=8.0, delta=1e-5)
        >>> plan = ps.Plan(schema=schema, cohort=ps.Cohort(2, 2, 1_000), privacy=privacy)
        >>> found = study(plan, (X, y), (X, y), {"LDA": ps.heads.LDA}, repeats=2, with_baselines=False)
        >>> found.metric, found.sizes["train"], found.repeats
        ('accuracy', 200, 2)
    """

    plan: Plan
    axes: Axes
    draws: Frame
    baselines: Mapping[str, float]
    missing: Mapping[str, str]
    metric: str
    seed: int
    repeats: int
    sizes: Mapping[str, int]
    data: str
    versions: Mapping[str, str]
    rivals: Mapping[str, Rival]
    confidence: float = 0.95
    device: str | None = None

    @property
    def summary(self) -> Frame:
        """One row per point and head: mean, standard deviation (ddof 1), Student's interval; for classifiers also mean
        balanced accuracy and AUC, and the share of replicates that predict one class alone.

        The spread covers noise and partitions, not test records.
        """
        groups: dict[tuple[Any, ...], list[dict[str, Any]]] = {}
        for row in self.draws:
            groups.setdefault(tuple(row[name] for name in _POINT), []).append(row)
        rows = [dict(zip(_POINT, point, strict=True)) | self._of(rows) for point, rows in groups.items()]
        return Frame.of(_SUMMARY, rows)

    def _of(self, rows: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
        scores = [row["score"] for row in rows]
        mean, deviation, low, high = fmean(scores), None, None, None
        if len(scores) > 1:
            deviation = stdev(scores)
            half = float(stdtrit(len(scores) - 1, (1 + self.confidence) / 2)) * deviation / math.sqrt(len(scores))
            low, high = mean - half, mean + half
        return {
            "draws": len(scores),
            "mean": mean,
            "deviation": deviation,
            "low": low,
            "high": high,
            **{name: _mean(row[name] for row in rows) for name in _MEANS},
            "one_class": fmean(row["one_class"] for row in rows),
            "dropped": fmean(row["dropped"] for row in rows),
            "upload_bytes": rows[0]["upload_bytes"],
        }

    def to_json(self) -> str:
        """Return the study in one document."""
        document = {
            "privstats": "sweep/3",
            "metric": self.metric,
            "plan": self.plan.tables,
            "plan_digest": self.plan.digest,
            "axes": asdict(self.axes),
            "repeats": self.repeats,
            "seed": self.seed,
            "sizes": dict(self.sizes),
            "data_sha256": self.data,
            "versions": dict(self.versions),
            "confidence": self.confidence,
            **({} if self.device is None else {"device": self.device}),
            "baselines": dict(self.baselines),
            "recipes": {name: asdict(rival.recipe) for name, rival in self.rivals.items()},
            "without_privacy": [name for name, rival in self.rivals.items() if not rival.private],
            "missing": dict(self.missing),
            "points": list(self.summary),
            "draws": list(self.draws),
        }
        return json_text(document)


def job_count(plan: Plan, axes: Axes, repeats: int) -> int:
    """Return the number of jobs of :func:`study`, for a progress bar.

    Example:
        >>> from privstats.contrib.sweep import Axes, job_count
        >>> plan = ps.Plan(schema=ps.ClassSchema(2, 2, "NA", 1.0), cohort=ps.Cohort(2, 2, 10), privacy=ps.NoPrivacy())
        >>> job_count(plan, Axes(clip_norm=(1.0, 2.0)), repeats=3)
        6
    """
    return len(list(axes.deals(plan))) * repeats


def study(
    plan: Plan,
    train: tuple[Any, Any],
    test: tuple[Any, Any],
    heads: Mapping[str, Callable[[], Any]],
    axes: Axes | None = None,
    *,
    repeats: int = 5,
    seed: int = 0,
    jobs: int = 1,
    device: str | None = None,
    with_baselines: bool = True,
    baselines: Sequence[str] = (),
    kept: str | os.PathLike[str] | None = None,
    tick: Callable[[], None] = lambda: None,
) -> Study:
    """Score heads without noise and at every point of the axes.

    Args:
        plan: everything that the axes do not vary. Open cut points become quantiles of ``train``, without noise;
            ``privstats try`` shows the cost of estimating them.
        train, test: ``(X, y)``, of the cohort and to score on.
        heads: functions by name, each for a fresh head or rival; picklable for several jobs.
        repeats: replicates at every point, at least 2, each with one partition and noise stream for all points.
        seed: fixes the replicates. Reproducible noise protects nothing: for experiments on data you may look at.
        device: a device of torch with float64, such as ``"cuda"``, on which heads multiply and factor matrices. Scores
            agree with the host's up to rounding; sums, noise and rivals stay on the host.
        with_baselines: score scikit-learn's models on the pooled records, too.
        baselines: names of rivals, such as ``"dp-sgd"``, ``"fedavg"``, ``"fedprox"``, ``"ensemble"``, scored in rows of
            their own on the same partitions, seeds and clipped rows. A rival without privacy has the point without
            noise alone.
        kept: a file for finished scores, from which a stopped study resumes.

    Raises:
        PlanError, SchemaError: an invalid plan at some point; nothing has been measured then.
        DataError: no records, records that do not fit the plan, or invalid arguments; no such device, or a head that
            is computed on the host alone.

    Example:
        >>> from privstats.contrib.sweep import Axes, study
        >>> X, y = np.random.default_rng(0).normal(size=(200, 2)), np.arange(200) % 2
        >>> privacy = ps.Privacy(model="central", unit="record", adjacency="add-remove", epsilon=8.0, delta=1e-5)
        >>> plan = ps.Plan(schema=ps.ClassSchema(2, 2, "NAB", 8.0), cohort=ps.Cohort(2, 2, 1_000), privacy=privacy)
        >>> axes, lda = Axes(epsilon=(1.0, 8.0)), {"LDA": ps.heads.LDA}
        >>> found = study(plan, (X, y), (X, y), lda, axes, repeats=2, with_baselines=False)
        >>> len(found.draws.rows)  # once without noise, and twice at each epsilon
        5
    """
    _check_arguments(plan, heads, repeats, jobs, baselines)
    _check_device(device, heads)
    heads, axes = {**heads, **rivals(*baselines)}, axes or Axes()
    plan = with_quantile_cuts(plan, _pair("train", train)[0])
    subject = Dataset(plan, axes, _arrays(plan, "train", train), _arrays(plan, "test", test), heads, seed, device)
    _check_points(subject)
    _check_records(subject)
    digest = _digest(subject.train, subject.test)
    every = [Trial(deal, draw) for deal in axes.deals(plan) for draw in range(repeats)]
    about = hashlib.sha256(
        repr((plan.digest, axes, digest, tuple(heads), seed, device, __version__)).encode()
    ).hexdigest()
    draws = _all_draws(subject, every, jobs, ResultCache(Draw, kept), about, tick)
    return Study(
        plan=plan,
        axes=axes,
        draws=Frame.of(_DRAWS, [asdict(draw) for draw in draws if draw.score is not None]),
        baselines=pooled_models(plan, subject.train, subject.test, lambda: None) if with_baselines else {},
        missing={f"{draw.head} from {draw.statistics}": draw.why for draw in draws if draw.score is None},
        metric=metric(plan.schema),
        seed=seed,
        repeats=repeats,
        sizes=_sizes(subject),
        data=digest,
        versions=_versions(subject),
        rivals=subject.rivals,
        device=device,
    )


def _all_draws(
    subject: Dataset, every: Sequence[Trial], jobs: int, store: ResultCache[Draw], about: str, tick: Callable[[], None]
) -> list[Draw]:
    remaining = [job for job in every if store.get(f"{about} {job}") is None]
    for _ in range(len(every) - len(remaining)):
        tick()
    with progress_bar("sweeping", len(every)) as advance:
        advance(len(every) - len(remaining))
        for job, draws in _done(subject, remaining, jobs):
            store.put(f"{about} {job}", draws)
            advance(1)
            tick()
    return [draw for job in every for draw in store.get(f"{about} {job}") or ()]


def _done(subject: Dataset, jobs: Sequence[Trial], processes: int) -> Iterator[tuple[Trial, tuple[Draw, ...]]]:
    if processes == 1 or len(jobs) < 2:
        yield from ((job, draws_of(subject, job)) for job in jobs)
        return
    with _workers(subject, min(processes, len(jobs))) as pool:
        running = {pool.submit(_work, job): job for job in jobs}
        for future in as_completed(running):
            yield running[future], future.result()


@contextmanager
def _workers(subject: Dataset, count: int) -> Iterator[ProcessPoolExecutor]:
    """Use fresh processes, because a forked one must not sample noise."""
    context = multiprocessing.get_context("spawn")
    pool = ProcessPoolExecutor(count, mp_context=context, initializer=_begin, initargs=(subject,))
    try:
        yield pool
    finally:
        pool.shutdown(cancel_futures=True)


_SUBJECT: list[Dataset] = []
"""In a worker: what it works on."""


def _begin(subject: Dataset) -> None:
    _SUBJECT[:] = [subject]


def _work(job: Trial) -> tuple[Draw, ...]:
    with threadpool_limits(1):  # the processes share the cores already
        return draws_of(_SUBJECT[0], job)


def _check_arguments(plan: Any, heads: Any, repeats: Any, jobs: Any, baselines: Any) -> None:
    if not isinstance(plan, Plan):
        raise DataError(f"plan must be a Plan, got {type(plan).__name__}; build one with Plan(...) or Plan.read(path)")
    if isinstance(baselines, str) or not isinstance(baselines, Sequence):
        raise DataError(f"baselines must be a list of names, for example ['fedavg'], got {type(baselines).__name__}")
    if not isinstance(heads, Mapping) or not heads:
        raise DataError(f"heads must map names to heads, for example {{'LDA': LDA}}, got {type(heads).__name__}")
    for name, head in heads.items():
        if not callable(head):
            raise DataError(
                f"heads[{name!r}] must return a new head when called, got {type(head).__name__}; pass a class"
            )
    for field, value, least in (("repeats", repeats, 2), ("jobs", jobs, 1)):
        if isinstance(value, bool) or not isinstance(value, int) or value < least:
            raise DataError(f"{field} must be an integer of at least {least}, got {value!r}")


def _check_device(device: str | None, heads: Mapping[str, Callable[[], Any]]) -> None:
    if device is None:
        return
    for name, make in heads.items():
        if not _fits_on_device(make()):
            able = ", ".join(each for each, entry in HEADS.items() if entry.on_device)
            raise DataError(f"heads[{name!r}] is computed on the host alone; omit device, or choose among {able}")
    with algebra_on(device):  # refuses a device that this machine lacks
        pass


def _fits_on_device(head: Any) -> bool:
    if isinstance(head, BehindMean):
        return _fits_on_device(head.make())
    entry = getattr(head, "entry", None)
    return isinstance(head, Rival) or (isinstance(entry, Entry) and entry.on_device)


def _check_points(subject: Dataset) -> None:
    inputs, rivals_here = np.shape(subject.train[0])[1], subject.rivals.values()
    for deal in subject.axes.deals(subject.plan):
        for point in subject.axes.points(subject.plan, deal):
            plan = plan_at(subject.plan, point, inputs, subject.axes.records_per_client)
            for rival in rivals_here:
                rival.require(plan)


def _pair(field: str, pair: Any) -> tuple[Any, Any]:
    if not isinstance(pair, tuple | list) or len(pair) != 2:
        raise DataError(f"{field} must be a pair (X, y), got {type(pair).__name__}; pass features and labels together")
    return named_target(*pair)


def _arrays(plan: Plan, field: str, pair: Any) -> tuple[Any, Any]:
    (X, y), cells = _pair(field, pair), plan.schema.reading.declaration
    X = ordered_columns(X, plan.schema.feature_names) if cells is None else Codes(codes_of(cells, X), {})
    try:
        moments = exact_moments(plan.schema, X, y)
    except DataError as error:
        raise DataError(f"{field}: {error}") from None
    if field == "train":
        warn_if_clipped(moments, stacklevel=4)
    if not moments.records:
        raise DataError(f"{field} holds no records; pass at least one")
    return (np.asarray(X) if cells is None else X), np.asarray(y)


def _check_records(subject: Dataset) -> None:
    records, most = len(subject.train[0]), subject.plan.cohort.max_records
    if predicted(subject.plan.schema) == "parties":  # one party counts as one record
        records = max(subject.axes.clients or (subject.plan.cohort.clients,))
    if records > most:
        raise DataError(f"train holds {records} records and cohort.max_records={most}; raise it in the plan")


def _digest(*parts: tuple[Any, Any]) -> str:
    total = hashlib.sha256()
    for array in (np.ascontiguousarray(each) for part in parts for each in part):
        total.update(f"{array.dtype.str}{array.shape}".encode() + array.tobytes())
    return total.hexdigest()


def _sizes(subject: Dataset) -> dict[str, int]:
    schema: Any = subject.plan.schema
    width = {"classes": schema.classes} if hasattr(schema, "classes") else {"targets": schema.targets}
    rows = {"train": len(subject.train[0]), "test": len(subject.test[0])}
    return {**rows, "columns": int(np.shape(subject.train[0])[1]), "features": schema.features, **width}


def _versions(subject: Dataset) -> dict[str, str]:
    trained = dict.fromkeys(name for rival in subject.rivals.values() for name in rival.packages)
    trained |= {"torch": None} if subject.device is not None else {}
    libraries = {name: version(name) for name in (*_PACKAGES, *trained)}
    return {"privstats": __version__, "python": platform.python_version(), **libraries}
