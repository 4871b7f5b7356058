"""Score a head over all parties from released counts of :class:`~privstats.Scoring`, without further cost."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from privstats.errors import ReleaseError
from privstats.estimates.denoise import Array
from privstats.heads.diagnostics import RARE
from privstats.inference.counts.statistics import confusion_of
from privstats.inference.counts.table import CountTable, Interval, ratio, z_of
from privstats.inference.description import Count, Description
from privstats.inference.figures import plot_score
from privstats.inference.head_curves import Reliability, RocCurve, reliability, roc_curve
from privstats.inference.own_scores import OwnRecords
from privstats.inference.releases import reckoned_sigma, require_gaussian, require_records
from privstats.inference.reporting import HIDDEN, Source
from privstats.inference.summary import RowTable, Summary, count_of, ends_of
from privstats.kinds import ScoringSchema
from privstats.release import Release
from privstats.schema import narrowed

_PAIR = 2
_COMMON = 0.75
"""Share of the commonest class from which on accuracy hardly tells heads apart."""


class Flagged(NamedTuple):
    """Sensitivity (of the second class) and specificity (of the first) at or above a threshold."""

    threshold: float
    sensitivity: Interval
    specificity: Interval


@dataclass(frozen=True, eq=False)
class HeadScore(RowTable):
    """Performance of a head on held-out records of all parties, with intervals for the population.

    Attributes:
        recall: accuracy per label; ``balanced_accuracy`` is its mean.
        confusion: noisy counts, labels (rows) by predictions, ``(C, C)``.
        predicted: share of each prediction, a row per label.
        roc: by class: the second of two; of more, one-vs-rest with ``by_class``, else none.
        calibration: of the predicted class; of the second of two for released scores' bins or own records; None for
            margins.
        only: the only predicted class up to noise, or None.
        own: one's own unbinned records, or None.
        records_sigma: standard error of the noise in ``records``.

    Example:
        >>> y = np.arange(900) % 2
        >>> X = np.random.default_rng(0).normal(size=(900, 2)) + 2 * y[:, None]
        >>> head = ps.heads.LDA().fit(X[:300], y[:300])
        >>> plan = ps.Scoring(head).plan(cohort=ps.Cohort(2, 2, 600), privacy=ps.NoPrivacy())
        >>> release = ps.simulate(plan, [(X[300:600], y[300:600]), (X[600:], y[600:])])
        >>> found = ps.inference.head_score(release)
        >>> found.confusion.sum(axis=1).tolist(), round(found.accuracy.value, 2), found.only
        ([300.0, 300.0], 0.93, None)
    """

    accuracy: Interval
    balanced_accuracy: Interval
    recall: Mapping[str, Interval]
    confusion: Array
    confusion_sigma: float
    predicted: tuple[tuple[Interval, ...], ...]
    roc: Mapping[str, RocCurve]
    calibration: Reliability | None
    records: float
    only: str | None
    release: Release
    alpha: float
    own: OwnRecords | None = None
    records_sigma: float = 0.0

    @property
    def auc(self) -> Mapping[str, Interval]:
        """Area under each curve of :attr:`roc`."""
        return {name: curve.auc for name, curve in self.roc.items()}

    @property
    def prevalence(self) -> float | None:
        """The second class's noisy share, or None."""
        if len(self.confusion) != _PAIR or not self.confusion.sum() > 0:
            return None
        return float(np.clip(self.confusion[1].sum() / self.confusion.sum(), 0.0, 1.0))

    def at(self, threshold: float) -> Flagged:
        """Return sensitivity and specificity of predicting the second of two classes from a threshold on.

        For own records the threshold is exact; for counts it is the nearest inner edge, which is returned.
        """
        if len(self.confusion) != _PAIR:
            raise ReleaseError("a threshold needs a head of two classes; for more classes read recall")
        if self.own is not None:
            return Flagged(threshold, *self.own.flagged(threshold, z_of(self.alpha)))
        (curve,) = self.roc.values()
        place = int(np.abs(curve.thresholds - threshold).argmin())
        false = curve.false_positive[place]
        right = Interval(1 - false.value, 1 - false.high, 1 - false.low, false.reported)
        return Flagged(float(curve.thresholds[place]), curve.true_positive[place], right)

    @property
    def reported(self) -> bool:
        """Whether the accuracy's interval is bounded."""
        return not self.why_not_reported

    @property
    def why_not_reported(self) -> str:
        """Why accuracy's interval is unbounded, or empty."""
        if self.accuracy.reported:
            return ""
        return (
            f"the noise hides how many records there are: about {count_of(self.records)}, with a noise of "
            f"{self.confusion_sigma:.3g} in each count; score more records, in fewer bins, or at a larger epsilon"
        )

    @property
    def remarks(self) -> tuple[str, ...]:
        """Notes on the numbers."""
        if self.only is None:
            return self._of_accuracy
        return (
            f"This head predicts one class, {self.only!r}, for every record, up to noise: its accuracy is that "
            "class's share, and its balanced accuracy that of guessing. The AUC may still separate the classes: "
            f"{RARE}.",
        )

    @property
    def _of_accuracy(self) -> tuple[str, ...]:
        counts = np.maximum(self.confusion.sum(axis=1), 0.0)
        if not self.reported or counts.max() < _COMMON * counts.sum():
            return ()
        label, share = list(self.recall)[int(counts.argmax())], counts.max() / counts.sum()
        return (
            f"Accuracy says little here: predicting {label!r} for every record would have about {share:.2f}. Read the "
            "AUC, and how many records of each class are recognised.",
        )

    def to_rows(self) -> list[dict[str, Any]]:
        """Return every measure with its interval: first those that a rare class does not distort."""
        return [
            {
                "metric": name,
                "class": label,
                "estimate": each.value if each.reported else math.nan,
                "conf_low": each.low,
                "conf_high": each.high,
                "reported": each.reported,
            }
            for name, label, each in self._measures()
        ]

    def summary(self, *, own: bool = False) -> Summary:
        """Return the table; ``own`` omits release, clients and guarantee."""
        rows = [(f"{name} {label}".strip(), *_shown(each)) for name, label, each in self._measures()]
        schema: Any = self.release.plan.schema
        units = "records" if self.own is None or self.own.persons is None else "persons"
        source = Source(self.release, self.alpha, f"independent {units} that the head was not fitted on")
        shown = source.summary(
            "Score of a head",
            ("", "estimate", *ends_of(self.alpha)),
            rows,
            head=(
                ("head", schema.head[:16]),
                ("outcomes", self._outcomes),
            ),
            about=Description(counts=(Count("records", self.records, self.records_sigma),)),
            notes=self.remarks,
            methods=f"A classifier (SHA-256 {schema.head[:16]}) was scored at every party on records held out of its "
            f"sums; counts of label, predicted class and score in {schema.score_bins} bins were summed. Shares have "
            "Wilson's intervals, the AUC's is by test inversion and covers what binning hides, all widened by the "
            "noise of the counts.",
        )
        if not own:
            return shown
        foot, title = (*source.assumptions, *self.remarks), "Score of a head on your own records"
        return replace(shown, title=title, promise="", foot=foot, methods="")

    @property
    def _outcomes(self) -> str:
        """Records per label, which TRIPOD requires."""
        sigma = self.confusion_sigma * math.sqrt(len(self.confusion))
        noise = f" (noisy, standard error {sigma:,.1f} each)" if sigma else ""
        counts = zip(self.recall, self.confusion.sum(axis=1), strict=True)
        return ", ".join(f"{count_of(count)} of {label}" for label, count in counts) + noise

    def plot(self, path: str | Path | None = None) -> Any:
        """Draw :func:`plot_score`'s panels."""
        return plot_score(self, path)

    def _measures(self) -> list[tuple[str, str, Interval]]:
        several = len(self.roc) > 1
        measures = [("AUC", name if several else "", each) for name, each in self.auc.items()]
        schema: Any = self.release.plan.schema
        if self.prevalence is not None and schema.score == "probability":
            for threshold in (self.own and self.own.thresholds) or (self.prevalence,):
                at = self.at(threshold)
                measures.append((f"sensitivity from {at.threshold:.3g} on", "", at.sensitivity))
                measures.append((f"specificity from {at.threshold:.3g} on", "", at.specificity))
        measures += [("balanced accuracy", "", self.balanced_accuracy)]
        measures += [("recall", name, each) for name, each in self.recall.items()]
        measures.append(("accuracy", "", self.accuracy))
        if self.calibration is not None:
            measures.append(("calibration error", "", self.calibration.error))
        return measures


def head_score(release: Release, *, alpha: float = 0.05) -> HeadScore:
    """Return accuracy, recall, AUC and calibration of a head from :class:`~privstats.Scoring` counts.

    Without noise accuracy, recall and confusion are the pooled records', and the AUC's interval holds the pooled one
    for any bins. Intervals are for the population and include noise and sampling.

    Raises:
        ReleaseError: another release, one with Laplace noise, or alpha is out of (0, .5].

    Example:
        >>> y = np.arange(900) % 2
        >>> X = np.random.default_rng(0).normal(size=(900, 2)) + 2 * y[:, None]
        >>> scoring = ps.Scoring(ps.heads.LDA().fit(X[:300], y[:300]))
        >>> terms = {"model": "central", "unit": "record", "adjacency": "add-remove", "epsilon": 1.0, "delta": 1e-5}
        >>> plan = scoring.plan(cohort=ps.Cohort(2, 2, 600), privacy=ps.Privacy(**terms))
        >>> found = ps.inference.head_score(ps.simulate(plan, [(X[300:600], y[300:600]), (X[600:], y[600:])]))
        >>> found.accuracy.low < 0.93 < found.accuracy.high, found.auc["1"].reported
        (True, True)
    """
    schema, z, sigma = _schema_of(release), z_of(alpha), reckoned_sigma(release)["T"]
    tables = _tables(schema, np.asarray(release.moments.T))
    counted = (_of_two if schema.classes == 2 else _of_more)(schema, tables, sigma, z)
    labels, k = tuple(map(str, schema.labels)), schema.classes
    table = CountTable(schema.variables[:1] * 2, counted.confusion, counted.sigma)
    read = confusion_of(table, labels, z)
    curves = {name: roc_curve(schema.edges, *groups, sigma, z) for name, groups in counted.curves.items()}
    right = CountTable((), counted.right, counted.right_sigma)
    return HeadScore(
        accuracy=ratio(float(right.counts[1]), right.total, (1, 1), right.sigma, z) if k > 2 else read.accuracy,
        balanced_accuracy=read.balanced_accuracy,
        recall=read.recall,
        confusion=counted.confusion,
        confusion_sigma=counted.sigma,
        predicted=_predicted(counted.confusion, counted.sigma, z),
        roc=curves,
        calibration=counted.calibration,
        records=right.total,
        only=_only(table, labels, z),
        release=release,
        alpha=alpha,
        records_sigma=right.sigma * 2**0.5,
    )


def score_of_own_records(score: HeadScore, labels: Sequence[Any], own: OwnRecords) -> HeadScore:
    """Return a score of own records, with errors per person."""
    z, predicted, named = z_of(score.alpha), own.shares.argmax(axis=1), [str(label) for label in labels]
    rows = [own.y == place for place in range(len(named))]
    every = np.ones(len(own.y), bool)
    return replace(
        score,
        accuracy=own.share(predicted == own.y, every, z),
        balanced_accuracy=own.balanced(score.balanced_accuracy.value, z),
        recall={name: own.share(predicted == place, rows[place], z) for place, name in enumerate(named)},
        predicted=tuple(tuple(own.share(predicted == each, row, z) for each in range(len(named))) for row in rows),
        roc={name: own.curve(named.index(name), z) for name in score.roc},
        calibration=own.calibration(labels, z),
        own=own,
    )


def _schema_of(release: Release) -> ScoringSchema:
    kind = type(require_records(release).plan.schema).__name__
    refusal = ReleaseError(f"this reader reads counts of a scored head, and the release measures a {kind}; see Scoring")
    schema = narrowed(release.plan.schema, ScoringSchema, refusal)
    require_gaussian(release)
    return schema


class _Counted(NamedTuple):
    """Counts of a score; ``right`` holds wrong and right ones, from the fewest cells."""

    confusion: Array
    sigma: float
    right: Array
    right_sigma: float
    curves: Mapping[str, tuple[Array, Array]]
    calibration: Reliability | None


def _tables(schema: ScoringSchema, T: Array) -> dict[tuple[str, ...], Array]:
    return {table: T[schema.place(table)].reshape(schema.shape(table)) for table in schema.tables}


def _of_two(schema: ScoringSchema, tables: Mapping[tuple[str, ...], Array], sigma: float, z: float) -> _Counted:
    (counts,), half = tables.values(), schema.first_half
    confusion = np.add.reduceat(counts, [0, half], axis=1)
    sums = np.array([confusion[0, 1] + confusion[1, 0], confusion.trace()])
    diagram = None
    if schema.cuts is not None:
        diagram = reliability(np.array(schema.edges), counts[0], counts[1], sigma, 1, z, str(schema.labels[1]))
    elif schema.score == "probability":
        right = counts[1, half:] + counts[0, half - 1 :: -1]
        wrong = counts[0, half:] + counts[1, half - 1 :: -1]
        diagram = reliability(np.array(schema.edges[half:]), wrong, right, sigma, 2, z)
    root = float(np.sqrt(max(half, schema.score_bins - half)))  # for the class with more bins
    return _Counted(
        confusion, sigma * root, sums, sigma * root * 2**0.5, {str(schema.labels[1]): (counts[0], counts[1])}, diagram
    )


def _of_more(schema: ScoringSchema, tables: Mapping[tuple[str, ...], Array], sigma: float, z: float) -> _Counted:
    confusion, sure, *others = tables.values()
    diagram = None
    if schema.score == "probability":
        diagram = reliability(np.array(schema.sure_edges), sure[0], sure[1], sigma, 1, z)
    curves = {str(name): (each[0], each[1]) for name, each in zip(schema.labels, others, strict=False)}
    return _Counted(confusion, sigma, sure.sum(axis=1), sigma * float(np.sqrt(schema.score_bins)), curves, diagram)


def _predicted(confusion: Array, sigma: float, z: float) -> tuple[tuple[Interval, ...], ...]:
    others = len(confusion) - 1
    return tuple(
        tuple(ratio(float(part), float(row.sum()), (1, others), sigma, z) for part in row) for row in confusion
    )


def _only(table: CountTable, labels: tuple[str, ...], z: float) -> str | None:
    predicted = table.counts.sum(axis=0)
    room = z * table.sigma * float(np.sqrt(len(predicted)))
    likeliest = int(predicted.argmax())
    others = np.delete(predicted, likeliest)
    return labels[likeliest] if predicted[likeliest] > room and (others <= room).all() else None


def _shown(interval: Interval) -> tuple[str, str, str]:
    return (f"{interval.value:.4f}" if interval.reported else HIDDEN, f"{interval.low:.4f}", f"{interval.high:.4f}")
