"""The scikit-learn interface that all classification heads share.

A subclass states which statistics it needs and turns evidence into a rule; the base class adds fitting on records or on
a release, and predictions. ``Classifier`` has the predictions of any head with one score per class.
"""

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
from privstats.estimates import denoise
from privstats.estimates.discriminant import log_priors
from privstats.heads.card import Described
from privstats.heads.diagnostics import quiet_about, warn_of_one_class, warn_of_unlike_columns
from privstats.heads.estimates.subspace import Subspace, evidence_subspace
from privstats.heads.evidence import Array, ClassEvidence, Released, class_evidence, class_sums, records_evidence
from privstats.heads.export import Exported
from privstats.heads.persistence import Stored
from privstats.heads.private import Labels, Promise, PublicRecords, Records, arrays, owners_terms, require_public
from privstats.heads.provenance import EXACT, UNKNOWN, OfOneRelease, Provenance, sources
from privstats.heads.registry import Bounds, Entry, check_dimension, check_parameters
from privstats.heads.released_scores import forget, remember
from privstats.heads.rules import LinearRule, Preprocessing, Rule, local, rows_of, take_columns
from privstats.moments.input_validation import places_of
from privstats.release import Release
from privstats.schema import Schema
from privstats.transforms import Column, Transform

if TYPE_CHECKING:
    from privstats.course import Releases
    from privstats.ledger.charges import Paid


class Classifier(ClassifierMixin, BaseEstimator):
    """Predictions of a classifier that has one score per class: scikit-learn's methods, computed from ``_scores``.

    Attributes:
        classes_: labels of the classes, shape ``(C,)``.
        softmax: whether its probabilities are the softmax of its scores.
    """

    classes_: NDArray[Any]
    softmax: ClassVar[bool] = True

    @abstractmethod
    def _scores(self, X: Any) -> Array:
        """Return the scores of rows, shape ``(n, C)``: log-densities up to a term common to all classes."""

    def decision_function(self, X: Any) -> Array:
        """Scores, shape ``(n, C)``; for two classes their difference, shape ``(n,)``, positive for ``classes_[1]``."""
        scores = self._scores(X)
        return scores[:, 1] - scores[:, 0] if scores.shape[1] == 2 else scores

    def predict(self, X: Any) -> NDArray[Any]:
        """Return the most probable class of every row, shape ``(n,)``."""
        labels: NDArray[Any] = self.classes_[self._scores(X).argmax(axis=1)]
        return labels

    def score(self, X: Any, y: Any, sample_weight: Any = None) -> float:
        """Return the share of rows with a correct prediction, 0 to 1; y may name a column of a table X.

        Labels of another type than ``classes_`` are read as ``measure`` and ``fit_private`` read them, each by itself;
        one that is no class is predicted wrong.

        Raises:
            DataError: no label of ``y`` is read as one of ``classes_``; or a table X has no column of the name y.
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
        """Class probabilities, shape ``(n, C)``."""
        return self._probabilities(self._scores(X))

    def predict_log_proba(self, X: Any) -> Array:
        """Return the logarithms of the class probabilities, shape ``(n, C)``."""
        return self._log_probabilities(self._scores(X))

    def _probabilities(self, scores: Array) -> Array:
        return np.asarray(special.softmax(scores, axis=1))

    def _log_probabilities(self, scores: Array) -> Array:
        return np.asarray(special.log_softmax(scores, axis=1))


def _kind(labels: NDArray[Any]) -> str:
    """Return ``"n"`` for numbers and truths of any type."""
    return "n" if labels.dtype.kind in "iufb" else labels.dtype.kind


def class_labels(schema: Schema, total: int, labels: Sequence[Any] | None) -> NDArray[Any]:
    """Return the names of the classes 0..C-1: the caller's, else the plan's, else their numbers."""
    if labels is None:
        names = schema.class_names
        return np.arange(total) if names is None else np.asarray(names)
    array = np.asarray(labels)
    if array.shape != (total,) or len(np.unique(array)) != total:
        raise DataError(f"labels must name each of the {total} classes of the schema once, in order")
    return array


class ClassHead(Stored, Exported, Described, OfOneRelease, Classifier):
    """A classifier made from class moments, by :meth:`fit` on local records or :meth:`fit_release` on a release.

    A subclass of another package sets ``entry`` (the statistics that it needs) and ``bounds`` (the values of its
    parameters) itself, solves in ``_solve``, and is announced under the entry-point group ``privstats.heads``. It sets
    ``uses_public`` to False where it does not read the class means that public records may pull, ``has_calibration`` to
    True where a course can give it a ``temperature_``, and ``unit_rows`` to True where it scales rows to norm 1
    whatever ``clip_norm`` is.

    Attributes:
        classes_: labels of the remaining classes, shape ``(C,)``; the plan's ``class_names`` where it has some.
        rule_: the decision rule, frozen arrays, of rows behind the public map.
        coef_, intercept_: of a linear rule, for the columns of X.
        n_features_in_: columns that ``predict`` expects.
        feature_names_in_: their names, where the plan or a DataFrame has them.
        fisher_: the Fisher subspace of the head, where ``subspace`` is not None.
        preprocessing_: the public map in front of the rule (the release's transform and clip norm; nothing after
            ``fit``).
        prototypes_: class means as the release gives them, behind the public map, ``(C, d)``.
        priors_: class probabilities that are in the scores, ``(C,)``.
        prevalence_: estimated shares of the classes among the records, given the noise of their counts, ``(C,)``.
        provenance_: its sources and its promise.

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
    subspace: Subspace = None

    def fit(self, X: Any, y: Any) -> Self:
        """Fit on local records, without clipping, rounding or noise.

        Args:
            X: features, shape ``(n, d)``; numpy, torch, a table or anything array-like, at least one record.
            y: labels, shape ``(n,)``, of any type; or the name of their column in a table X.

        Warns:
            UnlikeColumnsWarning: ranges of columns differ by more than a factor of 100, and the head shrinks.

        Raises:
            HeadError: a parameter out of its bounds.
        """
        check_parameters(self, self.bounds)
        X, y = validate_data(self, *local(X, y), dtype=np.float64)
        check_classification_targets(y)
        if self._shrinks_to_round():
            warn_of_unlike_columns(type(self).__name__, X)
        self.classes_, index = np.unique(y, return_inverse=True)
        self.preprocessing_, self.provenance_ = Preprocessing(features=X.shape[1]), EXACT
        return self._build(records_evidence(X, index, len(self.classes_), self._measured()))

    def fit_release(
        self,
        release: Released | Releases,
        labels: Sequence[Any] | None = None,
        *,
        public: tuple[Any, Any] | None = None,
    ) -> Self:
        """Fit on a release, using its noise levels; post-processing, so it costs no privacy.

        Args:
            release: a ``Release`` of class moments; or the releases of a ``Centred`` course, in order, of which the
                second is read and the promise is that of all. In a calibrated course the third gives ``LDA`` its
                temperature.
            labels: names of all C classes of the schema, in order; the plan's ``class_names`` if omitted, and 0..C-1
                where it has none. ``classes_`` holds those of the classes that were not suppressed.
            public: ``(X, y)``, records that are public, a few per class or of some classes: class means are pulled to
                theirs where noise hides their own (docs/heads.md). **No promise covers them**: what they hold may be
                read off the head.

        Raises:
            MissingStatisticError: the release lacks a statistic that this head needs.
            ReleaseError: not class moments, or every class is suppressed.
            HeadError: not a release at all, a parameter out of its bounds, a head that does not use ``public``, or a
                calibration for a head that has none, or that is not ``LDA()`` as the course computed it.
            PlanError: releases that no ``Centred`` course has together.
            DataError: ``labels`` does not name every class once; ``public`` is no pair of records of these classes; or
                a list of other releases.
        """
        check_parameters(self, self.bounds)
        self._check_public(public)
        used = sources(release)
        release = used.sums
        calibrate = None if used.calibration is None else self._calibration(used.calibration, public)
        evidence, keep = class_evidence(release)
        classes = class_labels(release.plan.schema, len(class_sums(release).N), labels)[keep]
        preprocessing = Preprocessing.of_release(release)
        known = None if public is None else PublicRecords.of(public, preprocessing, classes)
        take_columns(self, preprocessing)
        self.classes_, self.provenance_ = classes, UNKNOWN
        self._build(evidence if known is None else replace(evidence, public=known.means))
        if calibrate is not None:
            calibrate()
        remember(self, evidence)
        provenance = Provenance.of(used.releases)  # last: where no rule follows, an earlier one is still there
        self.provenance_ = provenance if known is None else msgspec.structs.replace(provenance, public=known.digest)
        return self

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
        """Fit on one party's own records with differential privacy: the head may be shown, the records need not be.

        Trust: the party that runs this sees the records and adds the noise. The exact sums are not stored.

        Args:
            X, y: records, as for ``privstats.measure``: arrays, or a table of pandas, polars, Arrow or DuckDB
                with the name of the labels' column; labels of any type. Batches come as ``X`` alone.
            epsilon, delta: the promise for one record.
            clip_norm: rows longer than this (after ``transform``) are shortened to it: a public choice. Needed without
                ``columns``.
            adjacency: ``"add-remove"`` or ``"replace-one"``.
            classes: all possible classes, from public knowledge. If omitted, those that occur in ``y``, which is then
                treated as public (``AssumedPublicWarning``). A label that is none of them is refused; with ``columns``
                its record is excluded (``UnreadableRecordsWarning``).
            columns: those of a raw table, as public words (:class:`~privstats.Numeric` and the others of
                :class:`~privstats.Cells`). Rows then have norm 1 for any content of the columns, so ``clip_norm`` and
                ``transform`` are omitted, and a mean is released first. Cut points of columns without edges are
                estimated before that (:class:`~privstats.Binned`), under the same promise. ``expected_records`` must be
                given.
            transform: public maps in front of the clip; they become part of the head.
            grid_bits, max_records: as in the schema and in ``privstats.private_release``.
            centred: release the mean of all rows first, and then the sums of rows centred by it (``Centred``); both
                together keep the promise. Rows are scaled to norm 1 behind ``transform``, and ``clip_norm`` must be 1.
            expected_records: n for ``centred`` or ``columns``, from public knowledge. If omitted, ``max_records``;
                without that, the nearest power of two to the number of rows, which is then treated as public
                (``AssumedPublicWarning`` under ``"add-remove"``).
            public: ``(X, y)``, records that are public, as in :meth:`fit_release`: **no promise covers them**.
            ledger, dataset: where the release is charged, as in ``privstats.private_release``; it has no default.
                Several fits on the same records add up, and only a ledger keeps the total; ``ledger="uncharged"``
                states that there is no ledger.

        Guarantee:
            The complete head is computed from one release, or all of a course (``centred``, ``columns``), which
            together are (epsilon, delta)-DP for one record under ``adjacency``. Number and names of the columns are
            public, the classes unless they are given, and of a ``centred`` course the number of rows to a power of two
            likewise; ``provenance_.assumed_public`` lists those that were read from the records.

        Attributes set: those of :meth:`fit_release`, and ``release_``, what was released; ``releases_`` of a course.

        Raises:
            HeadError: a parameter out of its bounds, or a head that does not use ``public``.
            SchemaError, PlanError: a bound or a promise out of range.
            DataError: records that do not fit, or ``public`` is no pair of records of these classes.
            LedgerError: neither ledger nor "uncharged" was given, or the cap would be passed; no noise is drawn then.
        """
        terms = (clip_norm, columns, transform, grid_bits, max_records, expected_records, ledger, dataset)
        promise = Promise(epsilon, delta, adjacency, *terms)
        check_parameters(self, self.bounds)
        return self._fit_under(promise, X, y, classes, public, centred=centred)

    def _fit_under(
        self, promise: Promise, X: Any, y: Any, classes: Sequence[Any] | None, public: Any, *, centred: bool
    ) -> Self:
        if promise.expected_records is not None and not (centred or promise.declared):
            raise HeadError("expected_records serves centred=True alone, and declared columns; leave it out")
        maps, norm = promise.rows(unit=centred)
        centred = centred or promise.declared
        records = (arrays if centred else Records.of)(X, y, maps)
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
        """Return a function that divides the fitted head's scores by the temperature of a calibration."""
        raise HeadError(
            f"{type(self).__name__} has no calibration, and the last release is LDA's: give None in its place"
        )

    @abstractmethod
    def _solve(self, evidence: ClassEvidence) -> Rule:
        """Return the closed form: from moments to a rule; may set further attributes ending in an underscore."""

    def _build(self, evidence: ClassEvidence) -> Self:
        evidence.require(type(self).__name__, *self.entry.any_of)
        n = denoise.counts(evidence.N, evidence.noise("N"))
        self.prototypes_ = denoise.class_means(evidence, n).values + evidence.origin
        self.priors_ = np.exp(log_priors(getattr(self, "priors", "counts"), n))
        self.prevalence_ = n / n.sum()
        if self.subspace is not None:
            check_dimension("subspace", self.subspace, evidence.features)
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
        self.rule_ = rule
        forget(self)

    @property
    def coef_(self) -> Array:
        """Weights of the columns of X, ``(C, d)``; behind a map that is not affine, of the columns that it gives.

        Raises:
            AttributeError: the rule is not linear.
        """
        return self._linear[0]

    @property
    def intercept_(self) -> Array:
        """Scores where all columns are 0, ``(C,)``.

        Raises:
            AttributeError: the rule is not linear.
        """
        return self._linear[1]

    @property
    def _linear(self) -> tuple[Array, Array]:
        check_is_fitted(self, "rule_")
        if not isinstance(self.rule_, LinearRule):
            raise AttributeError(f"{type(self).__name__} has no coef_: its rule is not linear in the columns")
        return self.rule_.before(self.preprocessing_.transform)

    def _shrinks_to_round(self) -> bool:
        """Return whether its shrinkage is toward a covariance that is equal in all columns, so that their units
        matter."""
        return getattr(self, "shrinkage", None) not in (None, 0)

    @property
    def _class_means(self) -> Array | None:
        """Class means behind the public map, ``(C, d)``; None where its release or its file has none."""
        return getattr(self, "prototypes_", None)

    def _measured(self) -> str:
        return self.entry.measured

    def _rows(self, X: Any) -> Array:
        return rows_of(self, X)

    def _scores(self, X: Any) -> Array:
        rows = self._rows(X)
        return self.rule_.scores(rows)

    def _threshold(self, threshold: float | Literal["prevalence"]) -> float:
        if len(self.classes_) != 2:
            raise HeadError(f"a threshold is one of two classes, and this head has {len(self.classes_)}: leave it out")
        known = getattr(self, "prevalence_", None)
        if threshold == "prevalence" and known is None:
            raise HeadError("the head's file holds no prevalence: give the share of the second class as a number")
        least = float(known[1]) if threshold == "prevalence" and known is not None else threshold
        if isinstance(least, str | bool) or not 0 < least < 1:
            raise HeadError(f"threshold must be above 0 and below 1, or 'prevalence', got {threshold!r:.40}")
        return least

    def predict(self, X: Any, *, threshold: float | Literal["prevalence"] | None = None) -> NDArray[Any]:
        """Return the most probable class of every row, shape ``(n,)``; or the second of two wherever it is likely
        enough.

        Args:
            X: rows.
            threshold: of two classes, the probability from which the second one is predicted: a number, where a missed
                one costs k false alarms ``1 / (1 + k)``; or ``"prevalence"``, its share among the records that the head
                was made from (``prevalence_``), by which a rare class is found. None: the more probable one.

        Raises:
            HeadError: a threshold that is not above 0 and below 1, of more than two classes, or the prevalence of a
                head from an older file or of no release.

        Warns:
            OneClassWarning: all rows get one class, and its means, probabilities or priors speak for others too.
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
