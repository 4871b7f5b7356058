"""Guess whether a text that nobody declared is a gap: for questions to a data holder, never for a sum."""

from __future__ import annotations

import re

from privstats.intake.meaning import word_of

_GAPS = frozenset(  # what studies write for a gap beyond the words of intake.meaning.MISSING; a guess
    ("asku", "nask",
     "-", "--", "---", ".", "..", "?", "??", "*", "/", "x", "xx", "xxx", "nd", "n.d.", "nk", "n.k.", "n.a.", "nc", "nr",
     "unk", "unknown", "miss", "missing", "not done", "not known", "not available", "not recorded", "pending",
     "refused", "k.a.", "k. a.", "n.b.", "keine angabe", "unbekannt", "fehlend", "inconnu", "non renseigné",
     "manquant", "desconocido", "s/d", "onbekend", "sconosciuto", "\\n")
)  # fmt: skip
_ERRORS = re.compile(r"#[A-Z0-9/]+[!?]?|\.[a-z_]")
"""Errors of Excel in any language, such as #DIV/0! and #WERT!, and the missing values of Stata and SAS."""


def is_gap_word(text: str) -> bool:
    """Guess whether an undeclared text is a gap: a word that every reader takes for one, a dash, an error of Excel.

    It only proposes ``gaps = [...]``: :meth:`privstats.intake.columns.Listed.decide` decides what a value is.

    Example:
        >>> from privstats.intake.gap_words import is_gap_word
        >>> [is_gap_word(text) for text in ("-", ".a", "#DIV/0!", "k.A.", " N/A", "A")]
        [True, True, True, True, True, False]
    """
    stripped = text.strip()
    like = word_of(text) or stripped.lower() in _GAPS or _ERRORS.fullmatch(stripped)
    return bool(like)
