"""Formulas as MathML, made when the pages are built: they render in every browser, offline, with no script."""

from __future__ import annotations

import html
from typing import Any

from latex2mathml.converter import convert

__all__ = ["setup"]


_LONG = 40  # characters of a formula that may be wider than a phone


def _inline(self: Any, node: Any) -> None:
    tex = node.astext()
    formula = convert(tex)
    self.body.append(f'<span class="long-math">{formula}</span>' if len(tex) > _LONG else formula)
    _done()


def _display(self: Any, node: Any) -> None:
    label = f' id="equation-{html.escape(node["label"])}"' if node.get("label") else ""
    self.body.append(f'<div class="math"{label}>{convert(node.astext(), display="block")}</div>')
    _done()


def _done() -> None:
    from docutils.nodes import SkipNode

    raise SkipNode


def setup(app: Any) -> dict[str, bool]:
    """Register the renderer under the name ``mathml``."""
    app.add_html_math_renderer("mathml", (_inline, None), (_display, None))
    return {"parallel_read_safe": True, "parallel_write_safe": True}
