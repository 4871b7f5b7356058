"""Score a head honestly over several parties: the plan by which each party scores its own records, and their scores.

Bins of two classes follow the distribution of scores in the head's own releases (:func:`cuts_of`); the head's file
stores it.

``kinds.scoring`` counts the scores that this module computes for a row; ``inference`` reads the released counts.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np
from numpy.typing import NDArray
from sklearn.utils.validation import check_is_fitted

from privstats.dp import NoPrivacy, Privacy
from privstats.errors import HeadError, PlanError
from privstats.heads.evidence import Array, class_evidence
from privstats.heads.persistence import FORMAT, content_of
from privstats.heads.provenance import Provenance
from privstats.heads.released_scores import ReleasedScores, described, released_scores
from privstats.intake.columns import read
from privstats.intake.tables import Codes
from privstats.kinds.scoring import HEAD, Scale, bytes_of
from privstats.moments.input_validation import places_of
from privstats.plan import Plan
from privstats.release import Release
from privstats.schema import ClassSchema, ScoringSchema
from privstats.schema.public_values import Published, Values

if TYPE_CHECKING:
    from privstats.files.envelope import Content
    from privstats.heads.estimator import ClassHead
    from privstats.heads.rules import Preprocessing
    from privstats.plan import Cohort
    from privstats.release import Release


Said: TypeAlias = tuple[Array, Array]
_BY_SITE = {"by_site", "by_sites", "groups", "sites"}


@dataclass(frozen=True)
class Scoring:
    """A scoring of a head over all parties: each party counts the head's predictions for records that it held out.

    The counts are summed under masks and noise, as any plan's, and :func:`privstats.inference.head_score` reads
    accuracy, recall, AUC and calibration off the release, with intervals.

    Args:
        head: a fitted classifier of this package. It is published with the plan: show no head that no promise covers.
        score_bins: bins of the score. More bins bound the AUC more closely, and add up more noise. For two classes they
            follow the distribution of scores in the head's releases, each with equally many records, which measures a
            rare outcome far better than bins of equal width, at no price. There may be fewer than ``score_bins`` then.
            A head of more classes, of no release or of an older file has bins of equal width.
        score: ``"probability"``; or ``"margin"``, for heads with probabilities that are nearly all 0 or 1. Calibration
            needs probabilities.
        reach: with a margin, the largest one with a bin of its own.
        by_class: of more than two classes, a table for each, for one-vs-rest AUC: C more tables under one promise.
        releases: of two classes, all that the head was made from, in order, where its file is an older one that does
            not know its scores.
        equal_bins: whether bins are of equal width all the same.
        labels: every label that records may have, in order, where the head lacks some because they were suppressed;
            their records count as wrong. Default: the classes of the head.

    Raises:
        HeadError: no fitted classifier that can be written to a file, one class alone, or one with a map that is fitted
            on each party's own records: its prediction for a record would depend on the others.
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
        """The schema of the counts."""
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
        """Return the edges of the bins where they follow the released scores; None where they are of equal width."""
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
        """The head, as the plan publishes it."""
        return published_head(self._bytes)

    def plan(self, *, cohort: Cohort, privacy: Privacy | NoPrivacy, **options: Any) -> Plan:
        """Return the plan of the score; ``options`` are further ones of :class:`~privstats.Plan`.

        Raises:
            PlanError: a promise or a cohort that no plan can have, counts that give no score, or scores of single
                sites.
        """
        if remedy := _unreadable_under(privacy):
            raise PlanError(f"no score could be read from the counts of such a plan, for {remedy}")
        if apart := sorted(options.keys() & _BY_SITE):
            raise PlanError(
                f"{apart[0]} would count the records of a site by itself, and the sum of one party is never opened: "
                "leave it out; a party scores its own records with head.score, or `privstats score HEAD FILE`"
            )
        return Plan(schema=self.schema, cohort=cohort, privacy=privacy, published=self.published, **options)


def own_shares(scoring: Scoring, X: Any, y: Any) -> tuple[NDArray[np.intp], Array, NDArray[np.bool_]]:
    """Return each readable record's label index, ``(n,)``, and probabilities, ``(n, C)``, and which records these are.

    Args:
        scoring: of the head.
        X: features, or codes of declared columns.
        y: labels; a record with another label, or with a gap among its features, is left out.
    """
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


def _unreadable_under(privacy: Privacy | NoPrivacy) -> str:
    """Return why ``inference.head_score`` refuses counts under a promise, and what to do; empty where it reads them."""
    if isinstance(privacy, NoPrivacy):
        return ""
    if privacy.unit == "person" and not privacy.averaged:
        return 'patients with several rows are clipped, which biases shares: give person_clip="average"'
    if privacy.client_clip is not None:
        return "whole clients are clipped, which biases shares: leave client_clip out"
    return "its intervals are proved for Gaussian noise: give a delta above 0" if privacy.pure else ""


def head_digest(head: Any) -> str:
    """Return the SHA-256 of a fitted head as a scoring plan and the head's own file hold it, in hex.

    Raises:
        HeadError: as for :class:`Scoring`.
    """
    return FORMAT.checksum(_checked(head))


def reader(schema: ScoringSchema, data: bytes) -> Callable[[NDArray[Any]], Said]:
    """Return a function that gives scores and probabilities of rows, ``(n, C)`` each, under the head of these bytes.

    Raises:
        PlanError: the bytes are no head that can be scored, or not of the schema's classes and columns.
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

    def read(rows: NDArray[Any]) -> Said:
        known = scores_alone(head, rows)
        scores, shares = (np.full((len(rows), schema.classes), empty) for empty in (-np.inf, 0.0))
        scores[:, places], shares[:, places] = known
        scores[np.isnan(known[0]).all(axis=1)] = np.nan
        return scores, shares

    return read


def published_provenance(values: Mapping[str, Values]) -> Provenance:
    """Return the provenance of the head that a plan publishes.

    Raises:
        PlanError: the bytes are no head.
    """
    try:
        provenance: Provenance = FORMAT.decode(bytes_of(values), "the published head").provenance_
    except HeadError as error:
        raise PlanError(f"the published head cannot be read: {error}") from None
    return provenance


def scores_alone(head: Any, rows: NDArray[Any]) -> Said:
    """Return scores and probabilities of every row, each computed alone, ``(n, C)`` each; NaN for a row that is not
    finite.

    Products of matrices round differently with more rows, so in a batch the last bits of one row's result depend on the
    others.
    """
    first: Preprocessing = head.preprocessing_
    scores, shares = (np.full((len(rows), len(head.classes_)), np.nan) for _ in range(2))
    for place, row in enumerate(np.asarray(rows, np.float64)):
        if first.cells is None and not np.isfinite(row).all():
            continue
        with np.errstate(all="ignore"):
            behind = first.apply(row[None].copy())
            if np.isfinite(behind).all():
                own = head.rule_.scores(behind)
                scores[place], shares[place] = own[0], head._probabilities(own)[0]
    return scores, shares


def _checked(head: Any) -> Content:
    if not hasattr(head, "_probabilities") or not hasattr(head, "get_params"):
        raise HeadError(f"only a classifier has a score to count, got {type(head).__name__}; give a fitted head")
    check_is_fitted(head, "rule_")
    if len(head.classes_) < 2:
        raise HeadError("the head knows one class and predicts no other, so there is nothing to score")
    if any(step.local for step in head.preprocessing_.transform):
        raise HeadError(
            "the head's map is fitted on the records that it scores, so a record's score depends on the others, "
            "and no promise for one record could hold: score a head with public maps alone"
        )
    return content_of(head)


def _places(schema: ScoringSchema, head: Any) -> list[int]:
    """Return the place of each class of the head among the labels.

    Raises:
        HeadError: one is no label of the schema, or of two labels one is no class of the head.
    """
    named = {str(label): place for place, label in enumerate(schema.labels)}
    places = [named.get(str(label), -1) for label in head.classes_.tolist()]
    if min(places) < 0 or len(set(places)) < len(places) or (schema.classes == 2 and len(places) < 2):
        raise HeadError("the head's classes are not among the labels of the records; give labels= with all of them")
    return places


_DIGITS = 6
_LEAST, _MOST = 1e-6, 1 - 1e-6


def score_cuts(head: Any, releases: Sequence[Release | None], bins: int) -> tuple[float, ...]:
    """Cuts of :func:`cuts_of` by the sums among a head's releases.

    Args:
        head: a fitted head of two classes.
        releases: all that it was made from.
        bins: how many, at least 2.

    Raises:
        HeadError: the head was made from others, or none of them holds sums of classes with B.
    """
    released = tuple(each for each in releases if each is not None)
    if tuple(each.digest for each in released) != tuple(head.provenance_.releases):
        raise HeadError(
            "releases must be those that the head was made from, in order, as `privstats head show` names them: bins "
            "follow no other sums"
        )
    sums = next((each for each in released if isinstance(each.plan.schema, ClassSchema)), None)
    if sums is None or len(head.classes_) != 2:
        raise HeadError("bins follow the class sums of a head of two classes; leave releases out and choose score_bins")
    evidence, _ = class_evidence(sums)
    if evidence.B is None or evidence.classes != 2:
        raise HeadError("bins follow sums of both classes with B; leave releases out and choose score_bins")
    return cuts_of(described(head, evidence), bins)


def cuts_of(scores: ReleasedScores, bins: int) -> tuple[float, ...]:
    """Return cuts between bins of the second class's probability, each with equally many of the records that the sums
    describe.

    Both classes weigh the same, because a pair of the AUC has one record of each. One half is a cut, so that a
    bin is of one predicted class, and so is the head's prevalence, where sensitivity and specificity of a rare class
    are read (``HeadScore.at``). Equal cuts are merged, so there may be fewer bins than requested.

    Guarantee:
        The cuts are a function of public values, no matter who holds the records that are scored later: no
        record that is scored has a part in the cuts, so each still counts 1 in exactly one public cell.

    Args:
        scores: of the head.
        bins: how many, at least 2.
    """
    fixed = {0.5, round(float(np.clip(scores.prevalence[1], _LEAST, _MOST)), _DIGITS)} if bins > 2 else {0.5}
    many = max(bins - len(fixed) + 1, 1)
    cuts = np.quantile(scores.quantiles, np.arange(1, many) / many)
    inner = np.round(np.clip(cuts, _LEAST, _MOST), _DIGITS)
    apart = np.abs(inner[:, None] - list(fixed)).min(axis=1) > 10.0**-_DIGITS
    return tuple(map(float, np.union1d(inner[apart], list(fixed))))


def planned_scores(plan: Plan) -> ReleasedScores | None:
    """Return what the head that a plan publishes knows of its scores; None of another plan, or without the head."""
    if not isinstance(plan.schema, ScoringSchema) or plan.published is None or plan.published.values is None:
        return None
    return released_scores(FORMAT.decode(bytes_of(plan.published.values), "the published head"))


def published_head(data: bytes) -> Published:
    """Return the bytes of a head as values that a plan publishes."""
    numbers: NDArray[np.int64] = np.frombuffer(data, np.uint8).astype(np.int64)
    return Published.of({HEAD: Values(numbers, 0)})
