"""Read the gap words that a person states for a rehearsal: for every column, or codes of one column."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from privstats.errors import DataError
from privstats.intake.column_names import place_of
from privstats.intake.columns import Listed, read, read_texts, values_of
from privstats.intake.meaning import meaning_of
from privstats.transforms import Column
from privstats.workflows.forms import are_codes


@dataclass(frozen=True)
class StatedGaps:
    """Gap words of a rehearsal.

    Attributes:
        words: texts that mean a gap in every column.
        codes: by column, texts that mean a gap there, numbers too.

    Example:
        >>> from privstats.workflows.rehearsal.stated import StatedGaps
        >>> StatedGaps.of(["zz", "crp=-9", "ILL=9"], ["crp", "ill"])
        StatedGaps(words=('zz',), codes={'crp': ('-9',), 'ill': ('9',)})
    """

    words: tuple[str, ...] = ()
    codes: Mapping[str, tuple[str, ...]] = field(default_factory=dict)

    @classmethod
    def of(cls, stated: Sequence[str], names: Sequence[str]) -> StatedGaps:
        """Sort what is stated into words, and codes of columns with these names.

        Raises:
            DataError: a number without a column, or a column that the tables lack.
        """
        words: list[str] = []
        codes: dict[str, tuple[str, ...]] = {}
        for text in dict.fromkeys(stated):
            column, sign, code = text.rpartition("=")
            place = place_of(column, names) if sign else None
            if place is not None:
                codes[names[place]] = (*codes.get(names[place], ()), code)
            elif sign and isinstance(meaning_of(code), float):
                raise DataError(f"--gaps {text} names no column of the tables; name one of {', '.join(names)}")
            elif isinstance(meaning_of(text), float):
                raise DataError(
                    f"gaps without a column are words in a rehearsal, got {text}: a number may be a value of another "
                    f"column, so name its column, as in --gaps {names[0]}={text}"
                )
            else:
                words.append(text)
        return cls(tuple(words), codes)

    def declared(self, column: Column) -> Column:
        """Return a column with its codes among its declared gaps."""
        texts = self.codes.get(column.name, ())
        codes: tuple[Any, ...] = texts if column.marks == "text" else tuple(map(_value_of, texts))
        new = tuple(dict.fromkeys(code for code in codes if code not in column.gaps))
        return replace(column, gaps=(*column.gaps, *new)) if new else column

    def blanked(self, name: str, values: Any) -> Any:
        """Return a column's values with None for its codes; 042 and 42 differ in a column of codes."""
        if not (codes := self.codes.get(name)):
            return values
        plain = values_of(values)
        as_text = are_codes(dict.fromkeys(each for each in plain if isinstance(each, str)))
        gone = Listed.of(codes, texts=as_text).places_of(read_texts(values) if as_text else read(values)) >= 0
        return [None if gap else value for value, gap in zip(plain, gone.tolist(), strict=True)]


NO_GAPS = StatedGaps()


def _value_of(text: str) -> str | int | float:
    number = meaning_of(text)
    if not isinstance(number, float):
        return text
    return int(number) if number.is_integer() else number
