"""A certificate as a page shows it: made from the example plan and checked, each time the pages are built.

The directive ``certificate`` stands for it. Numbers are the certificate's own fractions, to the digits that tell both
ends of a bound apart; the last line is what the checker says.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from decimal import ROUND_CEILING, ROUND_FLOOR, Decimal, localcontext
from fractions import Fraction
from html import escape
from importlib.resources import files
from typing import Any

import privstats as ps
from privstats.review.certificate import certificate_text
from privstats.review.certificate_checker import check

__all__ = ["card", "setup"]

_FEWEST, _MOST = 6, 1000
Row = tuple[str, ...]


def card(plan_text: str | None = None) -> str:
    """The certificate of a plan as HTML; of the example that ``plan init --example`` writes where none is given."""
    text = files("privstats.cli").joinpath("plan.toml").read_text("utf-8") if plan_text is None else plan_text
    plan = ps.Plan.from_toml(text)
    written = certificate_text(plan)
    claims = json.loads(written)
    meanings = {row.letter: row.meaning for row in plan.schema.sent}
    rows = [_row(letter, meanings[letter], claim) for letter, claim in claims["statistics"].items()]
    facts = [*_promise(claims), *_whole(claims)]
    said = "".join(f"<dt>{term}</dt><dd>{escape(stated)}</dd>" for term, stated in facts)
    head = ("statistic", "a record that moves it most", "square of the move", "bounds on it", "noise on a party's sum")
    table = "".join("<tr>" + "".join(f"<td>{escape(cell)}</td>" for cell in row) + "</tr>" for row in rows)
    titles = "".join(f'<th scope="col">{title}</th>' for title in head)
    return (
        '<figure class="certificate"><figcaption>Budget certificate</figcaption>'
        f"<dl>{said}</dl>"
        f'<div class="table-wrapper"><table><thead><tr>{titles}</tr></thead><tbody>{table}</tbody></table></div>'
        f'<p class="verdict">{escape(check(text, written))}</p>'
        f"<details><summary>The file, {len(written):,} characters</summary><pre>{escape(written)}</pre></details>"
        "</figure>\n"
    )


def _promise(claims: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
    yield "plan", claims["plan_digest"]
    yield (
        "promise",
        f"epsilon {claims['epsilon']} at delta {claims['delta']}, one {claims['unit']}, {claims['adjacency']}; "
        f"{claims['model']} noise of {claims['honest_shares']} honest parties",
    )


def _whole(claims: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
    yield "all together", f"mu^2 from {_between(claims['joint']['mu_squared'])}"
    yield "delta at this epsilon", f"from {_between(claims['delta_at_epsilon'])}, and delta is {claims['delta']}"


def _row(letter: str, meaning: str, claim: Mapping[str, Any]) -> Row:
    worst, sigma = claim["worst"], claim["sigma"]
    noise = ", ".join(
        f"{_decimal(Fraction(each), _FEWEST)}{'' if name == 'all' else ' ' + name}" for name, each in sigma.items()
    )
    moved = worst["moves"][letter]
    return f"{letter}: {meaning}", _pair(worst), moved, _between(claim["sensitivity_squared"]), f"{noise} steps"


def _pair(worst: Mapping[str, Any]) -> str:
    """The records that one of two data sets has more, on the grid."""
    found = [
        f"{each['times']} of class {each['cell']} with {', '.join(f'x{place} = {value}' for place, value in each['x'])}"
        for name in ("gone", "come")
        for each in worst[name]
    ]
    return "; ".join(found)


def _between(bounds: Mapping[str, str]) -> str:
    """Both ends, rounded outwards at the first digit that tells them apart."""
    low, high = Fraction(bounds["low"]), Fraction(bounds["high"])
    if low.denominator == high.denominator == 1:
        return f"{low} to {high}"
    digits = next(count for count in range(_FEWEST, _MOST) if _decimal(low, count) != _decimal(high, count))
    return f"{_decimal(low, digits, ROUND_FLOOR)} to {_decimal(high, digits, ROUND_CEILING)}"


def _decimal(number: Fraction, digits: int, rounding: str | None = None) -> str:
    with localcontext(prec=digits, rounding=rounding):
        return f"{Decimal(number.numerator) / Decimal(number.denominator):f}"


def setup(app: Any) -> dict[str, bool]:
    """Register the directive."""
    from docutils import nodes
    from docutils.parsers.rst import Directive

    class Certificate(Directive):
        def run(self) -> list[Any]:
            return [nodes.raw("", card(), format="html")]

    app.add_directive("certificate", Certificate)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
