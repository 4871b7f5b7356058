"""Plan and compute a head's scores over several parties."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any, Literal

import numpy as np
from numpy.typing import NDArray
from sklearn.utils.validation import check_is_fitted

from privstats.dp import NoPrivacy, Privacy
from privstats.errors import HeadError, PlanError
from privstats.heads.evidence import Array, class_evidence
from privstats.heads.persistence import FORMAT, content_of
from privstats.heads.provenance import Provenance
from privstats.heads.released_scores import ReleasedScores, ScoreEvidence, released_scores
from privstats.intake.columns import read
from privstats.intake.tables import Codes
from privstats.kinds import ClassSchema, ScoringSchema
from privstats.kinds.scoring import HEAD, Scale, ScoresAndShares, bytes_of
from privstats.plan import Plan
from privstats.plug_ins import definer
from privstats.records.labels import places_of
from privstats.release import Release
from privstats.schema.public_values import Published, Values
from privstats.transforms.base import attempted, is_ours

if TYPE_CHECKING:
    from privstats.files.envelope import Content
    from privstats.heads.estimator import ClassHead
    from privstats.heads.rules import Preprocessing
    from privstats.plan import Cohort
    from privstats.release import Release


_BY_SITE = {"by_site", "by_sites", "groups", "sites"}


@dataclass(frozen=True)
class Scoring:
    """Scoring of a head over all parties: each counts predictions for records that it held out.

    :func:`privstats.inference.head_score` reads accuracy, recall, AUC and calibration, with intervals, from the noisy
    sums.

    Args:
        head: a fitted classifier. The plan publishes it, so a promise must cover it.
        score_bins: maximum number of bins; more bins add noise, but bound the AUC more tightly. For two classes bins
            follow the scores in the head's releases, with equally many records each; else they have equal width.
        score: ``"probability"``; or ``"margin"`` for probabilities nearly all 0 or 1, without calibration.
        reach: largest margin with a bin of its own.
        by_class: C more tables under one promise, for one-vs-rest AUC.
        releases: all the head's releases in order, where its file lacks scores.
        equal_bins: force bins of equal width.
        labels: all labels, in order, where the head lacks some; their records count as wrong.

    Raises:
        HeadError: no storable classifier, one class alone, or a map fitted on each party's own records (a record's
            prediction would then depend on others).
        SchemaError: bins or labels out of their bounds.

    Example:
        >>> y = np.arange(900) % 2
        >>> X = np.random.default_rng(0).normal(size=(900, 2)) + y[:, None]
        >>> head = ps.heads.LDA().fit(X[:300], y[:300])
        >>> plan = ps.Scoring(head).plan(cohort=ps.Cohort(3, 3, 600), privacy=ps.NoPrivacy())
        >>> release = ps.simulate(plan, [(X[300 + k :: 3], y[300 + k :: 3]) for k in range(3)])
        >>> found = ps.inference.head_score(release)
        >>> round(found.accuracy.value, 3) == round(head.score(X[300:], y[300:]), 3)
        True
    """

    head: ClassHead
    score_bins: int = 20
    score: Scale = "probability"
    reach: float | None = None
    by_class: bool = False
    labels: Sequence[Any] | None = None
    releases: Sequence[Release | None] | None = None
    equal_bins: bool = False

    def __post_init__(self) -> None:
        _ = self.schema

    @cached_property
    def _content(self) -> Content:
        return _checked(self.head)

    @cached_property
    def _bytes(self) -> bytes:
        return FORMAT.encode(self._content)

    @cached_property
    def schema(self) -> ScoringSchema:
        """Schema of the counts."""
        digest, size = FORMAT.checksum(self._content), len(self._bytes)
        first = self.head.preprocessing_
        labels = list(self.head.classes_.tolist() if self.labels is None else self.labels)
        numbered = labels == list(range(len(labels))) and not any(isinstance(label, bool) for label in labels)
        cuts = self._cuts(len(labels))
        schema = ScoringSchema(
            digest,
            size,
            len(labels),
            first.features,
            score_bins=self.score_bins if cuts is None else len(cuts) + 1,
            cuts=cuts,
            score=self.score,
            reach=self.reach,
            by_class=self.by_class,
            transform=first.transform,
            class_names=None if numbered else tuple(map(str, labels)),
            feature_names=first.feature_names,
        )
        _places(schema, self.head)
        return schema

    def _cuts(self, classes: int) -> tuple[float, ...] | None:
        if self.equal_bins and self.releases is not None:
            raise HeadError("releases place bins of unequal width: leave releases or equal_bins out")
        if self.releases is not None:
            return score_cuts(self.head, self.releases, self.score_bins)
        if self.equal_bins or self.score != "probability" or classes != 2:
            return None
        scores = released_scores(self.head)
        return None if scores is None else cuts_of(scores, self.score_bins)

    @cached_property
    def published(self) -> Published:
        """The published head."""
        return published_head(self._bytes)

    def plan(self, *, cohort: Cohort, privacy: Privacy | NoPrivacy, **options: Any) -> Plan:
        """Return the plan; ``options`` go to :class:`~privstats.Plan`. PlanError if no score would be readable."""
        if remedy := _unreadable_under(privacy):
            raise PlanError(f"no score could be read from the counts of such a plan, for {remedy}")
        if apart := sorted(options.keys() & _BY_SITE):
            raise PlanError(
                f"{apart[0]} would count the records of a site by itself, and the sum of one party is never opened: "
                "leave it out; a party scores its own records with head.score, or `privstats score HEAD FILE`"
            )
        return Plan(schema=self.schema, cohort=cohort, privacy=privacy, published=self.published, **options)


def own_shares(scoring: Scoring, X: Any, y: Any) -> tuple[NDArray[np.intp], Array, NDArray[np.bool_]]:
    """Return label indices ``(n,)``, probabilities ``(n, C)``, and whether label and features are known."""
    schema, head = scoring.schema, scoring.head
    places = places_of(schema.labels, y)
    known = places >= 0
    if not isinstance(X, Codes):
        X = np.asarray(X)
        X = X if X.dtype.kind in "fiub" else read(X.reshape(-1)).numbers.reshape(X.shape)
        known &= np.isfinite(X).all(axis=1)
    shares = np.zeros((int(known.sum()), schema.classes))
    shares[:, _places(schema, head)] = head.predict_proba(X[known])
    return places[known], shares, known


def own_threshold(scoring: Scoring, threshold: float | Literal["prevalence"]) -> float:
    """Return the least probability of the second label; ``"prevalence"`` is that label's share, as the head knows it.

    HeadError if the head or the records have other than two classes, or for an unusable threshold.
    """
    head, classes = scoring.head, scoring.schema.classes
    least = head._threshold(threshold)
    if classes != len(head.classes_):
        raise HeadError(f"a threshold is one of two classes, and the records have {classes}: leave it out")
    return 1 - least if threshold == "prevalence" and _places(scoring.schema, head)[0] else least


def _unreadable_under(privacy: Privacy | NoPrivacy) -> str:
    if isinstance(privacy, NoPrivacy):
        return ""
    if privacy.unit == "person" and not privacy.averaged:
        return 'patients with several rows are clipped, which biases shares: give person_clip="average"'
    if privacy.client_clip is not None:
        return "whole clients are clipped, which biases shares: leave client_clip out"
    return "its intervals are proved for Gaussian noise: give a delta above 0" if privacy.pure else ""


def head_digest(head: Any) -> str:
    """Return the SHA-256 (hex) of a fitted head, as in its file and in scoring plans."""
    return FORMAT.checksum(_checked(head))


def reader(schema: ScoringSchema, data: bytes) -> Callable[[NDArray[Any]], ScoresAndShares]:
    """Return a function from rows to scores and probabilities ``(n, C)`` under the head in these bytes.

    PlanError if the head is not scorable, or not of the schema's digest, classes and columns.
    """
    try:
        head = FORMAT.decode(data, "the published head")
        content, places = _checked(head), _places(schema, head)
    except HeadError as error:
        raise PlanError(f"the published head cannot be scored: {error}") from None
    if FORMAT.checksum(content) != schema.head:
        raise PlanError("the published head is not the one whose SHA-256 the plan names; fetch the plan's own")
    first: Preprocessing = head.preprocessing_
    if (first.features, first.transform, first.feature_names) != (
        schema.features,
        schema.transform,
        schema.feature_names,
    ):
        raise PlanError("the published head reads other columns than the plan says; refuse the plan")

    def read(rows: NDArray[Any]) -> ScoresAndShares:
        known = scores_alone(head, rows)
        scores, shares = (np.full((len(rows), schema.classes), empty) for empty in (-np.inf, 0.0))
        scores[:, places], shares[:, places] = known
        scores[np.isnan(known[0]).all(axis=1)] = np.nan
        return scores, shares

    return read


def scored_by(data: bytes) -> str:
    """Return name and version of another package that defines a head's class or rule; empty for privstats.

    Bytes that hold no head are :func:`reader`'s to refuse.
    """
    try:
        head = FORMAT.decode(data, "the published head")
    except HeadError:
        return ""
    return next(filter(None, map(definer, (type(head), type(head.rule_)))), "")


def published_provenance(values: Mapping[str, Values]) -> Provenance:
    """Return a published head's provenance; PlanError for other bytes."""
    try:
        provenance: Provenance = FORMAT.decode(bytes_of(values), "the published head").provenance_
    except HeadError as error:
        raise PlanError(f"the published head cannot be read: {error}") from None
    return provenance


def scores_alone(head: Any, rows: NDArray[Any]) -> ScoresAndShares:
    """Return each row's scores and probabilities, computed alone, ``(n, C)`` each.

    NaN for rows not finite, and for a row at which a map or rule of another package fails. In a batch, rounding would
    make a row's last bits depend on other rows.
    """
    first: Preprocessing = head.preprocessing_
    scores, shares = (np.full((len(rows), len(head.classes_)), np.nan) for _ in range(2))
    ours = all(map(is_ours, (head.rule_, *first.transform)))
    for place, row in enumerate(np.asarray(rows, np.float64)):
        if first.cells is None and not np.isfinite(row).all():
            continue
        with np.errstate(all="ignore"):
            alone = _score(head, row) if ours else attempted(_score, head, row)
        if alone is not None:
            scores[place], shares[place] = alone
    return scores, shares


def _score(head: Any, row: NDArray[Any]) -> Array | None:
    behind = head.preprocessing_.apply(row[None].copy())
    if not np.isfinite(behind).all():
        return None
    own = head.rule_.scores(behind)
    both = np.array([own[0], head._probabilities(own)[0]])
    return both if both.shape == (2, len(head.classes_)) else None


def _checked(head: Any) -> Content:
    if not hasattr(head, "_probabilities") or not hasattr(head, "get_params"):
        raise HeadError(
            f"only a classifier has a score to count, got {type(head).__name__}: pass a fitted classifier; `privstats "
            "table RELEASE` prints a regression with its errors"
        )
    check_is_fitted(head, "rule_")
    if len(head.classes_) < 2:
        raise HeadError("the head knows one class and predicts no other, so there is nothing to score")
    if any(map_.local for map_ in head.preprocessing_.transform):
        raise HeadError(
            "the head's map is fitted on the records that it scores, so a record's score depends on the others, "
            "and no promise for one record could hold: score a head with public maps alone"
        )
    return content_of(head)


def _places(schema: ScoringSchema, head: Any) -> list[int]:
    named = {str(label): place for place, label in enumerate(schema.labels)}
    places = [named.get(str(label), -1) for label in head.classes_.tolist()]
    if min(places) < 0 or len(set(places)) < len(places) or (schema.classes == 2 and len(places) < 2):
        raise HeadError("the head's classes are not among the labels of the records; give labels= with all of them")
    return places


_DIGITS = 6
_LEAST, _MOST = 1e-6, 1 - 1e-6


def score_cuts(head: Any, releases: Sequence[Release | None], bins: int) -> tuple[float, ...]:
    """Return :func:`cuts_of` from all releases of a two-class head."""
    released = tuple(each for each in releases if each is not None)
    if tuple(each.digest for each in released) != tuple(head.provenance_.releases):
        raise HeadError(
            "releases must be those that the head was made from, in order, as `privstats head show` names them: bins "
            "follow no other sums"
        )
    sums = next((each for each in released if isinstance(each.plan.schema, ClassSchema)), None)
    if sums is None or len(head.classes_) != 2:
        raise HeadError("bins follow the class sums of a head of two classes; leave releases out and choose score_bins")
    evidence = ScoreEvidence.of(class_evidence(sums)[0], lambda rows: head._probabilities(head.rule_.scores(rows)))
    if evidence is None:
        raise HeadError("bins follow sums of both classes with B; leave releases out and choose score_bins")
    return cuts_of(released_scores(head) or evidence.drawn(), bins)


def cuts_of(scores: ReleasedScores, bins: int) -> tuple[float, ...]:
    """Return cuts of the second class's probability, with equally many records of ``scores`` per bin.

    Both classes weigh the same, as in the AUC's pairs. One half is a cut, so that each bin has one predicted class; so,
    of three bins or more, is the head's prevalence (``HeadScore.at``). Equal cuts are merged, so there may be
    fewer than ``bins``.

    Guarantee:
        The cuts are a function of public values. No scored record affects them, so each record still counts 1 in
        exactly one public cell.
    """
    fixed = {0.5, round(float(np.clip(scores.prevalence[1], _LEAST, _MOST)), _DIGITS)} if bins > 2 else {0.5}
    many = max(bins - len(fixed) + 1, 1)
    cuts = np.quantile(scores.quantiles, np.arange(1, many) / many)
    inner = np.round(np.clip(cuts, _LEAST, _MOST), _DIGITS)
    apart = np.abs(inner[:, None] - list(fixed)).min(axis=1) > 10.0**-_DIGITS
    return tuple(map(float, np.union1d(inner[apart], list(fixed))))


def planned_scores(plan: Plan) -> ReleasedScores | None:
    """Return a published head's released scores, if any."""
    if not isinstance(plan.schema, ScoringSchema) or plan.published is None or plan.published.values is None:
        return None
    return released_scores(FORMAT.decode(bytes_of(plan.published.values), "the published head"))


def published_head(data: bytes) -> Published:
    """Return a head's bytes as published values."""
    numbers: NDArray[np.int64] = np.frombuffer(data, np.uint8).astype(np.int64)
    return Published.of({HEAD: Values(numbers, 0)})
