"""Export heads as torch modules and ONNX files."""

from __future__ import annotations

from types import SimpleNamespace
from typing import TYPE_CHECKING, Any, Protocol, cast, get_args, runtime_checkable

import numpy as np
from sklearn.utils.validation import check_is_fitted

from privstats import optional_dependencies
from privstats.errors import HeadError
from privstats.files.atomic import atomic_write
from privstats.files.envelope import PathLike
from privstats.files.text import json_text
from privstats.heads.evidence import Array, Released
from privstats.heads.provenance import UNKNOWN, Provenance
from privstats.heads.rules import LinearRule, Preprocessing, Rule
from privstats.transforms import apply, input_features
from privstats.transforms.exact import arrays_of
from privstats.version import __version__

if TYPE_CHECKING:
    import torch

    from privstats.heads.onnx_graph import Graph, Precision


@runtime_checkable
class _Head(Protocol):
    def fit_release(self, release: Released) -> Any: ...


class _Fitted(_Head, Protocol):
    rule_: Rule
    preprocessing_: Preprocessing


def to_linear(head: object) -> torch.nn.Linear:
    """Return the head as a float32 ``torch.nn.Linear`` from raw rows to scores or predictions.

    Affine maps are composed with the rule. Clip and ``nonnegative`` are not included; rows that these would change
    score differently.

    Raises:
        HeadError: no head, or its rule or transform is not linear; use :func:`to_module`.
        MissingExtraError: torch is not installed.

    Example:
        >>> X, y = np.array([[0.0, 0.0], [0.0, 0.2], [1.0, 0.0], [1.0, 0.2]] * 5), [0, 0, 1, 1] * 5
        >>> ps.heads.to_linear(ps.heads.LDA().fit(X, y))
        Linear(in_features=2, out_features=2, bias=True)
    """
    torch = optional_dependencies.load("torch", by="to_linear")
    fitted = _fitted(head, "to_linear")
    rule, preprocessing = fitted.rule_, fitted.preprocessing_
    if not isinstance(rule, LinearRule):
        raise HeadError(f"{type(head).__name__} is not linear; export it with to_module")
    curved = [map_.kind for map_ in preprocessing.transform if not map_.affine]
    if curved:
        raise HeadError(
            f"this {type(head).__name__} stands behind the transform {curved[0]!r}, which no linear layer can hold; "
            "export it with to_module"
        )
    matrix, shift = _affine(preprocessing)
    linear = torch.nn.Linear(len(matrix), len(rule.coef))
    with torch.no_grad():
        linear.weight.copy_(torch.tensor(rule.coef @ matrix.T))
        linear.bias.copy_(torch.tensor(rule.intercept + rule.coef @ shift))
    return linear  # type: ignore[no-any-return]


def to_module(head: object, *, precision: Precision = "float64") -> torch.nn.Module:
    """Return the head as a ``torch.nn.Module``, from rows as for ``predict`` to scores ``(n, C)``.

    A table's rows are its codes, ``head.preprocessing_.ordered(table)`` (:class:`~privstats.Cells`). Transform,
    ``nonnegative`` and clip are included; a ``state_dict`` holds the rule alone. ``softmax`` of scores yields
    probabilities; ``RidgeClassifier``'s scores are unprojected probabilities instead. ``torch.export.export`` and
    ``torch.jit.trace`` accept any number of rows.

    Args:
        precision: ``"float32"`` for devices without float64; differences of large terms lose digits.

    Raises:
        HeadError: no head, another precision, float32 on declared columns, or a map that refuses tensors.
        MissingExtraError: torch is not installed.

    Example:
        >>> import torch
        >>> X, y = np.array([[0.0, 0.0], [0.0, 0.2], [1.0, 0.0], [1.0, 0.2]] * 5), [0, 0, 1, 1] * 5
        >>> head = ps.heads.QDA().fit(X, y)
        >>> scores = ps.heads.to_module(head)(torch.from_numpy(X))
        >>> scores.shape, bool((scores.argmax(1).numpy() == head.predict(X)).all())
        (torch.Size([20, 2]), True)
    """
    torch = optional_dependencies.load("torch", by="to_module")
    fitted = _fitted(head, "to_module")
    dtype = getattr(torch, _checked(precision, fitted.preprocessing_))
    inputs = input_features(fitted.preprocessing_.transform, fitted.preprocessing_.features)
    _require_graph_maps(fitted.preprocessing_, torch.zeros((1, inputs), dtype=dtype), "torch tensors")

    class Scores(torch.nn.Module):  # type: ignore[name-defined]
        def __init__(self) -> None:
            super().__init__()
            for name, array in fitted.rule_.arrays().items():
                self.register_buffer(name, torch.tensor(np.asarray(array), dtype=dtype))

        def forward(self, rows: Any) -> Any:
            return _scores(fitted, self, rows.to(dtype))

    return Scores()


def to_onnx(head: object, path: PathLike, *, precision: Precision = "float64") -> None:
    """Write :func:`to_module` as an ONNX file, atomically, for runtimes without Python.

    Input ``rows`` ``(n, inputs)``; outputs ``scores`` ``(n, C)`` and, for classifiers, ``label`` ``(n,)`` from
    ``classes_`` and ``probabilities`` ``(n, C)`` where these are a softmax. Metadata hold provenance and versions,
    unsigned, and a table's columns. A table's rows (:class:`~privstats.Cells`) are codes: a number, days since
    1970-01-01, 1 or 0 for a boolean, a category's index (one past the last for unknown ones), NaN for a gap.

    Raises:
        HeadError: as :func:`to_module`, or labels that are neither texts nor numbers.
        MissingExtraError: onnx is not installed.
        PrivstatsError: the file cannot be written.

    Example:
        >>> X, y = np.array([[0.0, 0.0], [0.0, 0.2], [1.0, 0.0], [1.0, 0.2]] * 5), ["ash", "ash", "elm", "elm"] * 5
        >>> ps.heads.to_onnx(ps.heads.LDA().fit(X, y), "trees.onnx")
        >>> import onnxruntime
        >>> session = onnxruntime.InferenceSession("trees.onnx")
        >>> session.run(["label"], {"rows": np.array([[0.9, 0.1]])})[0].tolist()
        ['elm']
    """
    onnx = optional_dependencies.load("onnx", by="to_onnx")
    from privstats.heads.onnx_graph import Graph, Symbol

    fitted = _fitted(head, "to_onnx")
    preprocessing, graph = fitted.preprocessing_, Graph(onnx, _checked(precision, fitted.preprocessing_))
    inputs = input_features(preprocessing.transform, preprocessing.features)
    _require_graph_maps(preprocessing, Symbol(Graph(onnx, precision), "rows", (None, inputs)), "the arrays of a graph")
    scores = _scores(fitted, SimpleNamespace(**fitted.rule_.arrays()), Symbol(graph, "rows", (None, inputs)))
    graph.add("Identity", scores.name, output="scores")
    outputs = [_value(graph, "scores", len(fitted.rule_.scores(np.zeros((1, preprocessing.features)))[0]))]
    if hasattr(head, "classes_"):
        outputs += _classified(graph, head)
    entrance = _value(graph, "rows", inputs)
    body = onnx.helper.make_graph(graph.nodes, type(head).__name__, [entrance], outputs, graph.constants)
    model = onnx.helper.make_model(body, opset_imports=[onnx.helper.make_opsetid("", _OPSET)], ir_version=_IR)
    model.producer_name, model.producer_version = "privstats", __version__
    onnx.helper.set_model_props(model, _properties(head))
    onnx.checker.check_model(model)
    atomic_write(path, model.SerializeToString())


class Exported:
    """A head that writes itself for other runtimes."""

    def to_onnx(self, path: PathLike, *, precision: Precision = "float64") -> None:
        """Write the head with :func:`privstats.heads.to_onnx`."""
        to_onnx(self, path, precision=precision)


def _scores(fitted: _Fitted, buffers: Any, rows: Any) -> Any:
    """Branch on no entry of ``rows``, so that graphs can be recorded."""
    preprocessing = fitted.preprocessing_
    rows, radius = apply(preprocessing.transform, rows), preprocessing.clip_norm
    xp = arrays_of(rows)
    if preprocessing.nonnegative:
        rows = xp.relu(rows)
    if radius is not None:
        norms = xp.sqrt(xp.vecdot(rows, rows))
        rows = rows * (radius / xp.where(norms > radius, norms, radius))[:, None]
    return fitted.rule_.in_graph(buffers, rows)


def _classified(graph: Graph, head: Any) -> list[Any]:
    labels = np.asarray(head.classes_.tolist())  # texts as texts, from any array
    if labels.dtype.kind not in _LABELS:
        raise HeadError("labels must be texts, numbers or truth values to stand in an ONNX file; rename the classes")
    number = getattr(graph.onnx.TensorProto, _LABELS[labels.dtype.kind])
    values = [each.encode() if isinstance(each, str) else each for each in labels.tolist()]
    graph.constants.append(graph.onnx.helper.make_tensor("classes", number, labels.shape, values))
    graph.add("Gather", "classes", graph.add("ArgMax", "scores", axis=1, keepdims=0), output="label")
    outputs = [graph.onnx.helper.make_tensor_value_info("label", number, ["n"])]
    if head.softmax:
        graph.add("Softmax", "scores", axis=1, output="probabilities")
        outputs.append(_value(graph, "probabilities", len(labels)))
    return outputs


_LABELS = {"U": "STRING", "i": "INT64", "u": "INT64", "b": "BOOL", "f": "DOUBLE"}
_OPSET, _IR = 18, 9  # released in 2023: runtimes from onnxruntime 1.15 on


def _value(graph: Graph, name: str, columns: int) -> Any:
    return graph.onnx.helper.make_tensor_value_info(name, graph.element, ["n", columns])


def _properties(head: Any) -> dict[str, str]:
    provenance: Provenance = getattr(head, "provenance_", UNKNOWN)
    cells = head.preprocessing_.cells
    columns = {} if cells is None else {"privstats.columns": json_text(cells.plain_table()["columns"])}
    return {"privstats.head": type(head).__name__, **provenance.tags(), **columns}


def _checked(precision: Precision, preprocessing: Preprocessing) -> Precision:
    from privstats.heads.onnx_graph import Precision

    if precision not in get_args(Precision):
        raise HeadError(f"precision must be one of {', '.join(map(repr, get_args(Precision)))}, got {precision!r:.40}")
    if precision != "float64" and preprocessing.cells is not None:
        raise HeadError(
            "codes of declared columns are compared as float64, for float32 moves values across cuts: leave it out"
        )
    return precision


def _fitted(head: object, call: str) -> _Fitted:
    if not isinstance(head, _Head):
        raise HeadError(f"{call} takes a fitted head of privstats.heads, got {type(head).__name__}; fit one first")
    check_is_fitted(head, "rule_")
    return cast("_Fitted", head)


def _affine(preprocessing: Preprocessing) -> tuple[Array, Array]:
    inputs = input_features(preprocessing.transform, preprocessing.features)
    shift = apply(preprocessing.transform, np.zeros((1, inputs)))[0]
    return apply(preprocessing.transform, np.eye(inputs)) - shift, shift


def _require_graph_maps(preprocessing: Preprocessing, rows: Any, what: str) -> None:
    kind = type(rows)
    for map_ in preprocessing.transform:
        try:
            rows = map_.apply(rows)
        except (TypeError, ValueError, AttributeError, RuntimeError):
            rows = None
        if not isinstance(rows, kind):
            raise HeadError(
                f"transform {map_.kind!r} does not take {what}, so the head cannot be exported; write its apply with "
                "transforms.exact, or serve the head itself"
            )
