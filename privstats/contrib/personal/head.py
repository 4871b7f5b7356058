"""One client's own head, fitted locally after a release; none of it may leave the client."""

from __future__ import annotations

import math
from copy import copy
from dataclasses import replace
from typing import Annotated, Any, ClassVar, Literal, Self

import msgspec
import numpy as np
from numpy.typing import NDArray
from sklearn.utils.validation import check_is_fitted

from privstats import domains
from privstats.contrib.personal.adaptation import PULLS, Adapter, TrainedAdapter, choose_pull, label_shares, offset
from privstats.errors import DataError, HeadError
from privstats.extend.heads import (
    EXACT,
    SWITCH,
    Bounds,
    Constraint,
    LinearRule,
    Number,
    Text,
    as_numpy,
    check_parameters,
    local,
)
from privstats.extend.support import Array, PathLike, Verifier, from_json
from privstats.files.envelope import Content, Format, Version, full_content
from privstats.files.signing import Signer
from privstats.heads import ClassHead, Provenance
from privstats.heads.estimator import Classifier
from privstats.heads.persistence import content_of, head_of
from privstats.transforms import Transform

NOTE = (
    "Made from the exact records of one client. The label counts, the offset and the adapter in this file, and its "
    "predictions for strangers, are outside every promise of the plan: keep it where the records are."
)
"""The note in every file of a personal head."""

_INNER = "head."
_LEAST_LOG = -700.0  # a probability of 0 stays about 0, and its logarithm finite


class _ClassHead(Constraint):
    def admits(self, value: Any) -> bool:
        return isinstance(value, ClassHead)

    def __str__(self) -> str:
        return "a classification head of privstats.heads"


class Personal(Classifier):
    """A release's head, adapted to one client with that client's records.

    docs/alignment.md states where each part helps, and where it hurts.

    Guarantee:
        None, on purpose. The release inside is as private as its plan states. The prior is the exact counts of the
        client, offset and adapter are functions of single records, so this head, its file and its predictions for
        anyone but the client are outside every promise. Nothing is sent.

    Args:
        head: fitted on a release; not changed.
        prior: weigh classes by the client's label shares, Laplace's ``(n_c + 1) / (n + C)``.
        offset: subtract ``sum(x - m_y) / (n + lambda)``, the client's shift beyond its labels; m are the release's
            class means.
        adapter: ``"linear"`` maps rows toward the class means in closed form (FedCGS eq. 12 without its task loss);
            ``"trained"`` minimises all of eq. 12, for heads with linear scores; or ``"none"``.
        attraction: lambda of eq. 12, for ``"trained"``: weight of the distance to the class means.
        pull: strength of the pull back to the release: a number (1 halves offset and adapter), or ``"cv"``: five folds
            choose, and the release stays unless a change is proved better.

    Attributes:
        log_ratio_: added to the log-probabilities of ``head``, ``(C,)``.
        shift_: the offset, ``(d,)``, or None.
        centre_, matrix_: the adapter is ``centre + (x - centre) matrix``, ``(d,)`` and ``(d, d)``, or None.
        provenance_: exact; the release's is ``head.provenance_``.

    Example:
        >>> X, y = np.array([[0.0, 0.0], [0.0, 0.2], [1.0, 0.0], [1.0, 0.2]] * 5), np.array([0, 0, 1, 1] * 5)
        >>> schema = ps.ClassSchema(2, 2, "NAB", clip_norm=4.0)
        >>> head = ps.heads.LDA().fit_release(ps.Release.exact(schema, ps.measure(schema, X, y)))
        >>> shifted = X + [0.8, 0.0]  # one client's instrument reads too high
        >>> from privstats.contrib.personal import Personal
        >>> head.score(shifted, y), Personal(head, offset=True).fit(shifted, y).score(shifted, y)
        (0.5, 1.0)
    """

    log_ratio_: Array
    shift_: Array | None
    centre_: Array | None
    matrix_: Array | None
    provenance_: ClassVar[Provenance] = EXACT

    bounds: ClassVar[Bounds] = {
        "head": (_ClassHead(),),
        "prior": SWITCH,
        "offset": SWITCH,
        "adapter": (Text("none", "linear", "trained"),),
        "attraction": (Number(),),
        "pull": (Text("cv"), Number()),
    }

    def __init__(
        self,
        head: ClassHead,
        *,
        prior: bool = True,
        offset: bool = False,
        adapter: Literal["none", "linear", "trained"] = "none",
        attraction: float = 0.03,
        pull: float | Literal["cv"] = "cv",
    ) -> None:
        self.head = head
        self.prior = prior
        self.offset = offset
        self.adapter = adapter
        self.attraction = attraction
        self.pull = pull

    def __sklearn_clone__(self) -> Self:
        return type(self)(**self.get_params(deep=False))

    @property
    def n_features_in_(self) -> int:
        """Number of columns that ``predict`` accepts."""
        return int(self._known("n_features_in_"))

    @property
    def feature_names_in_(self) -> NDArray[Any]:
        """The inner head's feature names."""
        names: NDArray[Any] = self._known("feature_names_in_")
        return names

    def _known(self, name: str) -> Any:
        check_is_fitted(self, "log_ratio_")
        return getattr(self.head, name)

    def fit(self, X: Any, y: Any) -> Self:
        """Fit the client's part on the client's records.

        Args:
            X: features, shape ``(n, inputs)``, as for ``head.predict``.
            y: labels, ``(n,)``, from ``head.classes_``.

        Raises:
            HeadError: a parameter out of its bounds, or an unsuitable head.
            DataError: no record, not one label per record, or an unknown label.
        """
        check_parameters(self, self.bounds)
        _require_known(self.head)
        if self.adapter == "trained":
            _linear_rule(self.head)
        X, y = local(X, y)
        rows = self.head._rows(X)
        index = _indices(self.head, y, len(rows))
        self.classes_ = self.head.classes_
        self.log_ratio_ = self._log_ratio(index)
        self.pulls_: dict[str, float] = {}
        self.shift_, self.centre_, self.matrix_ = None, None, None
        if self.offset:
            residuals = rows - self.head.prototypes_[index]
            self.shift_ = offset(residuals, self._pull("offset", rows, index))
        if self.adapter != "none":
            moved = self._moved(rows)
            adapter = self._adapter(moved, index)
            self.centre_, self.matrix_ = adapter.centre, adapter.matrix(self._pull("adapter", moved, index))
        return self

    def save(self, path: PathLike, signer: Signer | None = None) -> None:
        """Write the personal head, with :data:`NOTE` in it, atomically.

        Args:
            path: a file stored where the records are: it is a function of them.
            signer: an Ed25519 private key, or its 32 bytes.
        """
        check_is_fitted(self, "log_ratio_")
        inner = content_of(self.head)
        manifest = _Manifest(
            note=NOTE,
            prior=bool(self.prior),
            offset=bool(self.offset),
            adapter=self.adapter,
            attraction=float(self.attraction),
            pull=self.pull if isinstance(self.pull, str) else float(self.pull),
            pulls={name: None if math.isinf(pull) else pull for name, pull in self.pulls_.items()},
            head=inner.manifest.decode(),
        )
        own = {"log_ratio": self.log_ratio_, "shift": self.shift_, "centre": self.centre_, "matrix": self.matrix_}
        tensors = {name: np.ascontiguousarray(value) for name, value in own.items() if value is not None}
        tensors |= {_INNER + name: value for name, value in inner.tensors.items()}
        FORMAT.write(path, Content(msgspec.json.encode(manifest, order="deterministic"), tensors), signer)

    @classmethod
    def load(cls, path: PathLike, signed_by: Verifier | None = None) -> Self:
        """Read what :meth:`save` wrote; raises ``HeadError``."""
        return FORMAT.read(path, signed_by)

    def _scores(self, X: Any) -> Array:
        check_is_fitted(self, "log_ratio_")
        return _logs(self.head, self._moved(self.head._rows(X))) + self.log_ratio_

    def _moved(self, rows: Array) -> Array:
        if self.shift_ is not None:
            rows = rows - self.shift_
        if self.matrix_ is None or self.centre_ is None:
            return rows
        return self.centre_ + (rows - self.centre_) @ self.matrix_

    def _log_ratio(self, index: NDArray[np.intp]) -> Array:
        known = self.head.priors_
        return np.log(label_shares(index, len(known)) / known) if self.prior else np.zeros(len(known))

    def _adapter(self, rows: Array, index: NDArray[np.intp]) -> Adapter | TrainedAdapter:
        means, centre = self.head.prototypes_[index], self.head.priors_ @ self.head.prototypes_
        closed = Adapter.of(rows, means, centre)
        if self.adapter == "linear":
            return closed
        rule = _linear_rule(self.head)
        intercept = rule.intercept + self._log_ratio(index)
        return TrainedAdapter(closed, rows, means, index, rule.coef, intercept, float(self.attraction))

    def _pull(self, name: str, rows: Array, index: NDArray[np.intp]) -> float:
        if self.pull == "cv":
            judge = self._judge_offset if name == "offset" else self._judge_adapter
            self.pulls_[name] = choose_pull(index, lambda train, held: judge(rows, index, train, held))
        else:
            self.pulls_[name] = float(self.pull)
        return self.pulls_[name]

    def _judge_offset(
        self, rows: Array, index: NDArray[np.intp], train: NDArray[np.intp], held: NDArray[np.intp]
    ) -> list[Array]:
        residuals = rows[train] - self.head.prototypes_[index[train]]
        candidates = (rows[held] - offset(residuals, pull) for pull in PULLS)
        return [self._held_out(candidate, index, train, held) for candidate in candidates]

    def _judge_adapter(
        self, rows: Array, index: NDArray[np.intp], train: NDArray[np.intp], held: NDArray[np.intp]
    ) -> list[Array]:
        adapter = self._adapter(rows[train], index[train])
        candidates = (adapter.moved(rows[held], pull) for pull in PULLS)
        return [self._held_out(candidate, index, train, held) for candidate in candidates]

    def _held_out(self, rows: Array, index: NDArray[np.intp], train: NDArray[np.intp], held: NDArray[np.intp]) -> Array:
        logs = self._log_probabilities(_logs(self.head, rows) + self._log_ratio(index[train]))
        return logs[np.arange(len(held)), index[held]]


def with_local_transform(head: ClassHead, own: Transform) -> ClassHead:
    """Return a release's head behind a transport, with one client's own map in place of the plan's.

    Args:
        head: fitted on a release; its plan names the transport.
        own: the client's, from ``reference.local(transport, X)``.

    Raises:
        HeadError: the head is not fitted, or has no such map.

    Example:
        >>> from privstats.contrib.alignment import Reference
        >>> from dataclasses import replace
        >>> from privstats.contrib.personal import with_local_transform
        >>> first = ps.GaussianSchema(2, clip_norm=8.0, shrinkage=0.1, rounds=1)
        >>> zero, one = (ps.schema.public_values.Values.rounded(each) for each in (np.zeros(2), np.eye(2)))
        >>> reference = Reference(mean=zero, covariance=one, schema=first)
        >>> schema = ps.ClassSchema(2, 2, "NAB", clip_norm=8.0, transform=(reference.transport(strength=0.4),))
        >>> X, y = np.array([[3.0, 0.0], [3.0, 0.2], [4.0, 0.0], [4.0, 0.2]] * 5), np.array([0, 0, 1, 1] * 5)
        >>> own = reference.local(schema.transform[0], X)
        >>> moments = ps.measure(replace(schema, transform=(own,)), X, y)
        >>> head = ps.heads.LDA().fit_release(ps.Release.exact(schema, moments))
        >>> with_local_transform(head, own).score(X, y)
        1.0
    """
    _require_known(head)
    maps = head.preprocessing_.transform
    if own not in maps:
        raise HeadError("the head's release has no such transform; pass the client's own copy of the plan's")
    mine = copy(head)
    mine.provenance_ = EXACT  # the client's own map is a function of its records
    mine.preprocessing_ = replace(head.preprocessing_, transform=tuple(own if map_ == own else map_ for map_ in maps))
    return mine


class _Manifest(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True, omit_defaults=True):
    note: str
    prior: bool
    offset: bool
    adapter: Literal["none", "linear", "trained"]
    attraction: float = 0.03  # older files have none, and their bytes do not change
    pull: float | Literal["cv"]
    pulls: dict[str, Annotated[float, msgspec.Meta(ge=0)] | None]
    head: str


_LARGEST = 1e30
"""Largest magnitude in a personal head's file: products of its square with numbers of a head's file are finite."""


def _read(content: Content, path: PathLike) -> Personal:
    try:
        manifest = from_json(content.manifest, _Manifest)
        tensors = dict(content.tensors)
        inner = {name.removeprefix(_INNER): tensors.pop(name) for name in list(tensors) if name.startswith(_INNER)}
        head = head_of(Content(manifest.head.encode(), inner), path)
        personal = Personal(
            head,
            prior=manifest.prior,
            offset=manifest.offset,
            adapter=manifest.adapter,
            attraction=manifest.attraction,
            pull=manifest.pull,
        )
        check_parameters(personal, personal.bounds)
        _require_known(head)
        _check_tensors(personal, tensors)
    except (RecursionError, ValueError, HeadError) as error:
        damaged = f"{path} is damaged: its manifest and its tensors do not hold together; fit the head again"
        raise HeadError(damaged) from (error if isinstance(error, HeadError) else None)
    personal.classes_, personal.log_ratio_ = head.classes_, tensors["log_ratio"]
    personal.shift_, personal.centre_, personal.matrix_ = (tensors.get(n) for n in ("shift", "centre", "matrix"))
    personal.pulls_ = {name: math.inf if pull is None else pull for name, pull in manifest.pulls.items()}
    return personal


FORMAT = Format[Personal](
    name=domains.PERSONAL_HEAD_FILE,
    noun="personal head",
    writer="Personal.save",
    error=HeadError,
    readers={
        2: Version(_read, full_content(domains.PERSONAL_HEAD_FILE_2)),
    },
)
"""Files of personal heads; no release wrote version 1."""


def _check_tensors(personal: Personal, tensors: dict[str, NDArray[Any]]) -> None:
    """Raise ValueError for other tensors, types or shapes than the parameters require, or nonfinite values."""
    classes, features = personal.head.prototypes_.shape
    shapes: dict[str, tuple[int, ...]] = {"log_ratio": (classes,)}
    if personal.offset:
        shapes["shift"] = (features,)
    if personal.adapter != "none":
        shapes |= {"centre": (features,), "matrix": (features, features)}
    if {name: values.shape for name, values in tensors.items()} != shapes:
        raise ValueError("tensors of other names or shapes")
    if not all(values.dtype == np.float64 and (np.abs(values) <= _LARGEST).all() for values in tensors.values()):
        raise ValueError("tensors must be float64 of a size that squares of products can have")


def _require_known(head: ClassHead) -> None:
    if not hasattr(head, "rule_"):
        raise HeadError(f"head is a {type(head).__name__} that is not fitted; pass one after fit_release")
    if not hasattr(head, "prototypes_"):
        raise HeadError("head comes from a file without class means; fit it on the release again")


def _linear_rule(head: ClassHead) -> LinearRule:
    if not isinstance(head.rule_, LinearRule):
        raise HeadError(
            f"adapter='trained' needs a head with linear scores, such as LDA, not a {type(head).__name__}: set "
            "adapter='linear'"
        )
    return head.rule_


def _indices(head: ClassHead, y: Any, records: int) -> NDArray[np.intp]:
    labels = np.asarray(as_numpy(y))
    if labels.shape != (records,) or not records:
        raise DataError(f"y must hold one label for each of the {records} rows of X, at least one; got {labels.shape}")
    return head._places(labels)


def _logs(head: ClassHead, rows: Array) -> Array:
    return np.maximum(head._log_probabilities(head.rule_.scores(rows)), _LEAST_LOG)
