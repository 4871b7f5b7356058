"""The scikit-learn interface that all classification heads share."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any, ClassVar, Literal, Self

import msgspec
import numpy as np
from numpy.typing import NDArray
from scipy import special
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import check_is_fitted, validate_data

from privstats.dp.privacy import Adjacency
from privstats.errors import DataError, HeadError, ReleaseError
from privstats.heads.card import Described
from privstats.heads.diagnostics import class_indices, quiet_about, warn_of_one_class, warn_of_unlike_columns
from privstats.heads.evidence import Array, ClassEvidence, Released, class_evidence, class_sums, records_evidence
from privstats.heads.export import Exported
from privstats.heads.fitting.subspace import Subspace, evidence_subspace
from privstats.heads.persistence import FittedState, Stored
from privstats.heads.private import (
    FitPromise,
    Labels,
    OwnRecords,
    PublicRecords,
    arrays,
    named_numbers,
    owners_terms,
    require_public,
)
from privstats.heads.provenance import EXACT, UNKNOWN, OfOneRelease, Provenance, sources
from privstats.heads.registry import Bounds, Entry, check_parameters
from privstats.heads.released_scores import ReleasedScores, ScoreEvidence
from privstats.heads.rules import LinearRule, Preprocessing, Rule, local, rows_of, take_columns
from privstats.records.labels import places_of
from privstats.release import Release
from privstats.schema import Schema
from privstats.transforms import Column, Transform

if TYPE_CHECKING:
    from privstats.course import Releases
    from privstats.course.paid import Paid


class Classifier(ClassifierMixin, BaseEstimator):
    """A classifier; all predictions follow from ``_scores``.

    Attributes:
        classes_: labels, ``(C,)``.
        softmax: whether probabilities are the softmax of scores.
    """

    classes_: NDArray[Any]
    softmax: ClassVar[bool] = True

    @abstractmethod
    def _scores(self, X: Any) -> Array:
        """Return log-densities up to a term common to all classes, ``(n, C)``."""

    def decision_function(self, X: Any) -> Array:
        """Return scores ``(n, C)``; for two classes their difference ``(n,)``, positive for ``classes_[1]``."""
        scores = self._scores(X)
        return scores[:, 1] - scores[:, 0] if scores.shape[1] == 2 else scores

    def predict(self, X: Any) -> NDArray[Any]:
        """Return the most probable class of every row, ``(n,)``."""
        labels: NDArray[Any] = self.classes_[self._scores(X).argmax(axis=1)]
        return labels

    def score(self, X: Any, y: Any, sample_weight: Any = None) -> float:
        """Return the accuracy; y may name a column of a table X.

        Labels of another type than ``classes_`` are converted (DataError if none is known); unknown ones count as
        wrong.
        """
        X, y = local(X, y)
        labels = np.asarray(y)
        if _kind(labels) == _kind(self.classes_):
            with quiet_about(labels):
                return float(super().score(X, labels, sample_weight))
        places = places_of(list(self.classes_), labels)
        if (places < 0).all():
            raise DataError("y holds labels of another kind than classes_; give the classes by their names or numbers")
        with quiet_about(places):
            right = (self.predict(X) == self.classes_[places]) & (places >= 0)
        return float(np.average(right, weights=sample_weight))

    def predict_proba(self, X: Any) -> Array:
        """Return class probabilities, ``(n, C)``."""
        return self._probabilities(self._scores(X))

    def predict_log_proba(self, X: Any) -> Array:
        """Return log probabilities, ``(n, C)``."""
        return self._log_probabilities(self._scores(X))

    def _probabilities(self, scores: Array) -> Array:
        return np.asarray(special.softmax(scores, axis=1))

    def _log_probabilities(self, scores: Array) -> Array:
        return np.asarray(special.log_softmax(scores, axis=1))


def _kind(labels: NDArray[Any]) -> str:
    return "n" if labels.dtype.kind in "iufb" else labels.dtype.kind


def class_labels(schema: Schema, total: int, labels: Sequence[Any] | None) -> NDArray[Any]:
    """Return the names of classes 0..C-1: the caller's, else the plan's, else their numbers."""
    if labels is None:
        names = schema.class_names
        return np.arange(total) if names is None else np.asarray(names)
    array = np.asarray(labels)
    if array.shape != (total,) or len(np.unique(array)) != total:
        raise DataError(f"labels must name each of the {total} classes of the schema once, in order")
    return array


class ClassHead(Stored, Exported, Described, OfOneRelease, Classifier):
    """A classifier built from class moments: local records (:meth:`fit`) or a release (:meth:`fit_release`).

    Subclasses set ``entry`` and ``bounds`` and implement ``_solve``; other packages announce theirs under the
    entry-point group ``privstats.heads``. Set ``uses_public=False`` if class means are ignored,
    ``has_calibration=True`` if a course can set ``temperature_``, ``unit_rows=True`` if rows are scaled to norm 1, and
    ``sure_under_noise=False`` if noise in the sums does not make probabilities too sure: cards of others warn of it.
    Override ``_needs_like_columns`` if anything but ``shrinkage`` makes probabilities depend on the columns' units.

    Attributes:
        classes_: remaining classes' labels, ``(C,)``.
        rule_: decision rule behind the public map.
        n_features_in_, feature_names_in_: columns that ``predict`` expects.
        fisher_: unless ``subspace`` is None.
        preprocessing_: the release's transform and clip.
        prototypes_: class means behind the public map, ``(C, d)``.
        priors_, prevalence_: class shares in the scores, and those estimated of the records, ``(C,)``.
        score_evidence_: sums, or a file's quantiles, that place the bins of a score session; None where unknown.

    Example:
        >>> from privstats.heads.registry import Entry
        >>> from privstats.heads.rules import LinearRule
        >>> class Nearest(ps.heads.ClassHead):  # the nearest class mean, from N and A alone
        ...     entry, bounds = Entry(), {}
        ...     def _solve(self, evidence):
        ...         means = evidence.A / evidence.N[:, None]
        ...         return LinearRule(means, -np.square(means).sum(axis=1) / 2 - means @ evidence.origin)
        >>> head = Nearest().fit([[0.0], [0.2], [1.0], [1.2]], ["ash", "ash", "elm", "elm"])
        >>> head.predict([[0.3], [0.9]]).tolist()
        ['ash', 'elm']
    """

    entry: ClassVar[Entry]
    bounds: ClassVar[Bounds]
    uses_public: ClassVar[bool] = True
    has_calibration: ClassVar[bool] = False
    unit_rows: ClassVar[bool] = False
    sure_under_noise: ClassVar[bool] = True
    subspace: Subspace = None
    score_evidence_: ScoreEvidence | ReleasedScores | None

    def fit(self, X: Any, y: Any) -> Self:
        """Fit on local records, without clipping, rounding or noise.

        Args:
            X: features, ``(n, d)``.
            y: labels, ``(n,)``; or their column in a table X.

        Warns:
            UnlikeColumnsWarning: column ranges differ over 100-fold, and the head shrinks.
        """
        check_parameters(self, self.bounds)
        X, y = validate_data(self, *local(X, y), dtype=np.float64)
        check_classification_targets(y)
        if self._needs_like_columns():
            warn_of_unlike_columns(type(self).__name__, X)
        self.classes_, index = np.unique(y, return_inverse=True)
        self.preprocessing_, self.provenance_ = Preprocessing(features=X.shape[1]), EXACT
        return self._fit_rows(X, index)

    def _fit_rows(self, X: Array, index: NDArray[np.intp]) -> Self:
        """Build the head from rows ``(n, d)`` and their places in ``classes_``; ``fit`` has checked both."""
        return self._build(records_evidence(X, index, len(self.classes_), self._measured()))

    def fit_release(
        self,
        release: Released | Releases,
        labels: Sequence[Any] | None = None,
        *,
        public: tuple[Any, Any] | None = None,
    ) -> Self:
        """Fit on a release; post-processing, so it costs no privacy.

        Args:
            release: a ``Release`` of class moments; or a ``Centred`` course's: mean, sums and, if calibrated, the one
                that sets ``LDA``'s temperature. The promise is that of all.
            labels: all C classes, in order. Default: the plan's ``class_names``, else 0..C-1.
            public: ``(X, y)``, public records; noisy class means are pulled to theirs. **No promise covers them**: the
                head may reveal them.

        Raises:
            MissingStatisticError: the release lacks a needed statistic.
            ReleaseError: not class moments, or every class is suppressed.
            HeadError: not a release, a parameter out of bounds, or unusable ``public`` or calibration.
            PlanError, DataError: releases of no single course, or wrong ``labels`` or ``public``.
        """
        check_parameters(self, self.bounds)
        self._check_public(public)
        used = sources(release)
        release = used.sums
        calibrate = None if used.calibration is None else self._calibration(used.calibration, public)
        evidence, keep = class_evidence(release)
        preprocessing, names = self._front(release, len(class_sums(release).N), labels)
        classes = names[keep]
        known = None if public is None else PublicRecords.of(public, preprocessing, classes)
        self._begin(preprocessing, classes)
        self._build(evidence if known is None else replace(evidence, public=known.means))
        if calibrate is not None:
            calibrate()
        self.score_evidence_ = ScoreEvidence.of(evidence, self._row_shares)
        provenance = Provenance.of(used.releases)  # last: where no rule follows, an earlier one is still there
        self.provenance_ = provenance if known is None else msgspec.structs.replace(provenance, public=known.digest)
        return self

    @staticmethod
    def _front(release: Released, total: int, labels: Sequence[Any] | None) -> tuple[Preprocessing, NDArray[Any]]:
        """Return the public map in front of a release's rule, and the names of its ``total`` classes."""
        names = class_labels(release.plan.schema, total, labels)
        return Preprocessing.of_release(release), names

    def _begin(self, preprocessing: Preprocessing, classes: NDArray[Any]) -> None:
        """Set the columns and classes of a release; its provenance is unknown until a rule follows."""
        take_columns(self, preprocessing)
        self.classes_, self.provenance_ = classes, UNKNOWN

    @owners_terms
    def fit_private(
        self,
        X: Any,
        y: Any = None,
        *,
        epsilon: float,
        delta: float,
        clip_norm: float | None = None,
        adjacency: Adjacency,
        classes: Sequence[Any] | None = None,
        columns: Sequence[Column] | None = None,
        transform: Sequence[Transform] = (),
        grid_bits: int = 12,
        max_records: int | None = None,
        centred: bool = False,
        expected_records: int | None = None,
        public: tuple[Any, Any] | None = None,
        ledger: Paid = None,
        dataset: str | None = None,
    ) -> Self:
        """Fit on one party's own records with differential privacy, so that the head may be published.

        Trust: the party that runs this sees the records and adds the noise. The exact sums are not stored.

        Args:
            X, y: records, as for ``privstats.measure``; batches as ``X`` alone.
            epsilon, delta: the promise for one record.
            clip_norm: public norm to which longer rows are clipped after ``transform``; needed without ``columns``.
            classes: all possible classes, from public knowledge. Default: those in ``y``, then treated as public
                (``AssumedPublicWarning``). Records of no class are refused, or excluded under ``columns``.
            columns: public declarations of a raw table's columns (:class:`~privstats.Cells`), in place of ``clip_norm``
                and ``transform``. Missing cut points (:class:`~privstats.Binned`) and a mean are released first, under
                the same promise. ``expected_records`` is required.
            transform: public maps in front of the clip.
            grid_bits, max_records: as in ``privstats.private_release``.
            centred: release the mean first, then sums centred by it (``Centred``), under one promise. ``clip_norm``
                must be 1: rows are scaled to norm 1.
            expected_records: n for ``centred`` or ``columns``, from public knowledge. Default: ``max_records``, else
                the number of rows to a power of two (``AssumedPublicWarning`` under ``"add-remove"``).
            public: as in :meth:`fit_release`: **no promise covers them**.
            ledger, dataset: where the release is charged; only a ledger holds the total of several fits.
                ``"uncharged"`` states that there is none.

        Guarantee:
            The complete head is computed from one release, or all of a course (``centred``, ``columns``), which
            together are (epsilon, delta)-DP for one record under ``adjacency``. Number and names of the columns are
            public; unless given, so are the classes and, for ``centred``, the number of rows to a power of two
            (``provenance_.assumed_public``).

        Attributes set: those of :meth:`fit_release`, and ``release_``; ``releases_`` of a course.

        Raises:
            HeadError, SchemaError, PlanError, DataError: unsuitable parameters or records.
            LedgerError: no ledger was given, or the cap would be passed; no noise is sampled then.
        """
        terms = (clip_norm, columns, transform, grid_bits, max_records, expected_records, ledger, dataset)
        promise = FitPromise(epsilon, delta, adjacency, *terms)
        check_parameters(self, self.bounds)
        return self._fit_under(promise, X, y, classes, public, centred=centred)

    def _fit_under(
        self, promise: FitPromise, X: Any, y: Any, classes: Sequence[Any] | None, public: Any, *, centred: bool
    ) -> Self:
        if promise.expected_records is not None and not (centred or promise.declared):
            raise HeadError("expected_records serves centred=True alone, and declared columns; leave it out")
        maps, norm = promise.rows(unit=centred)
        centred = centred or promise.declared
        records = (arrays if centred else OwnRecords.of)(X, y, maps)
        labels = Labels.of(records, classes)
        schema = labels.schema(records, self._measured(), maps, norm, promise.grid_bits)
        self._check_public(public)
        require_public(public, schema, labels.names)
        numbered = records.labelled(labels.places if promise.declared else labels.numbers)
        if not centred:
            self.release_ = promise.release(schema, numbered)
            return self.fit_release(self.release_, labels.names.tolist(), public=public)._assuming(labels.assumed)
        rows = promise.counted(records)
        self.releases_, course = promise.releases("centred", schema, rows.n, numbered)
        self.fit_release(self.releases_, labels.names.tolist(), public=public)  # refuses a second session without a sum
        *_, self.release_ = (each for each in self.releases_ if each is not None)
        return self._assuming(labels.assumed + rows.assumed, course)

    def _check_public(self, public: object) -> None:
        if public is not None and not self.uses_public:
            raise HeadError(f"{type(self).__name__} does not use public records; give them to LDA, or leave them out")

    def _calibration(self, release: Release, public: object) -> Callable[[], None]:  # noqa: ARG002
        raise HeadError(
            f"{type(self).__name__} has no calibration, and the last release is LDA's: give None in its place"
        )

    @abstractmethod
    def _solve(self, evidence: ClassEvidence) -> Rule:
        """Return the rule; may set further attributes ending in an underscore."""

    def _build(self, evidence: ClassEvidence) -> Self:
        evidence.require(type(self).__name__, *self.entry.any_of)
        n = evidence.counts
        self.prototypes_ = evidence.means.values + evidence.origin
        self.priors_ = np.exp(evidence.log_priors(getattr(self, "priors", "counts")))
        self.prevalence_ = n / n.sum()
        if self.subspace is not None:
            evidence.check_dimension("subspace", self.subspace)
            evidence.require(f"{type(self).__name__} in a Fisher subspace", "B")
            self.fisher_ = evidence_subspace(evidence, self.subspace)
            rule = self._solve(evidence.projected(self.fisher_.basis)).lifted(self.fisher_.basis)
        else:
            rule = self._solve(evidence)
        if not all(np.isfinite(array).all() for array in rule.arrays().values()):
            raise ReleaseError(
                f"{type(self).__name__} found no finite solution: the moments are too large or too small for float64; "
                "rescale the features so that clip_norm is near 1"
            )
        self._adopt(rule)
        return self

    def _adopt(self, rule: Rule) -> None:
        self.rule_, self.score_evidence_ = rule, None

    def _restore(self, saved: FittedState) -> None:
        if saved.classes is None:
            raise ValueError("a classifier's file must list its classes")
        self.classes_ = np.asarray(saved.classes)
        super()._restore(saved)
        self.score_evidence_ = saved.scores

    @property
    def coef_(self) -> Array:
        """Weights of X's columns, or of a non-affine map's outputs, ``(C, d)``; linear rules only."""
        return self._linear[0]

    @property
    def intercept_(self) -> Array:
        """Scores where all columns are 0, ``(C,)``; linear rules only."""
        return self._linear[1]

    @property
    def _linear(self) -> tuple[Array, Array]:
        check_is_fitted(self, "rule_")
        if not isinstance(self.rule_, LinearRule):
            raise AttributeError(f"{type(self).__name__} has no coef_: its rule is not linear in the columns")
        return self.rule_.before(self.preprocessing_.transform)

    def _places(self, labels: NDArray[Any]) -> NDArray[np.intp]:
        """Return labels' places in ``classes_``, ``(n,)``; numbers match texts that are read alike. DataError else."""
        return class_indices(self, named_numbers(self.classes_, labels))

    def _needs_like_columns(self) -> bool:
        return getattr(self, "shrinkage", None) not in (None, 0)

    @property
    def _class_means(self) -> Array | None:
        return getattr(self, "prototypes_", None)

    def _measured(self) -> str:
        return self.entry.measured

    def _rows(self, X: Any) -> Array:
        return rows_of(self, X)

    def _scores(self, X: Any) -> Array:
        rows = self._rows(X)
        return self.rule_.scores(rows)

    def _row_shares(self, rows: Array) -> Array:
        return self._probabilities(self.rule_.scores(rows))

    def _threshold(self, threshold: float | Literal["prevalence"]) -> float:
        if len(self.classes_) != 2:
            raise HeadError(f"a threshold is one of two classes, and this head has {len(self.classes_)}: leave it out")
        known = getattr(self, "prevalence_", None)
        if threshold == "prevalence" and known is None:
            raise HeadError("the head knows no prevalence: give the share of the second class as a number")
        least = float(known[1]) if threshold == "prevalence" and known is not None else threshold
        if isinstance(least, str | bool) or not 0 < least < 1:
            raise HeadError(f"threshold must be above 0 and below 1, or 'prevalence', got {threshold!r:.40}")
        return least

    def predict(self, X: Any, *, threshold: float | Literal["prevalence"] | None = None) -> NDArray[Any]:
        """Return the most probable class of every row, ``(n,)``; with a threshold, the second of two at or above it.

        Args:
            threshold: two classes only: minimum probability of the second class, ``1 / (1 + k)`` where a miss costs k
                false alarms; or ``"prevalence"``, its share of the records (``prevalence_``). HeadError if unusable.

        Warns:
            OneClassWarning: all rows get one class although others are likely.
        """
        rows = self._rows(X)
        if threshold is not None:
            least = self._threshold(threshold)
            above = self._probabilities(self.rule_.scores(rows))[:, 1] >= least
            flagged: NDArray[Any] = self.classes_[above.astype(np.intp)]
            return flagged
        best = self.rule_.best(rows)
        warn_of_one_class(self, self._class_means, rows, best)
        labels: NDArray[Any] = self.classes_[best]
        return labels
