"""Write names, texts, numbers and conditions in the SQL of DuckDB, PostgreSQL or Spark.

No name and no text reaches a statement but through :meth:`Dialect.name` and :meth:`Dialect.text`.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass

from privstats.errors import DataError

_BLANKS = [chr(code) for code in range(0x3001) if chr(code).isspace()]
"""The blanks that ``str.strip`` removes. All of them have codes up to U+3000."""
_PLAIN_TEXT = re.compile(r"[A-Za-z0-9 _.,:#/<>=()+-]*")
_UPPER, _LOWER = "ABCDEFGHIJKLMNOPQRSTUVWXYZ", "abcdefghijklmnopqrstuvwxyz"
_POSTGRES_NAME_BYTES = 63  # a longer name is truncated without an error


@dataclass(frozen=True)
class Dialect:
    """One engine's SQL.

    Attributes:
        quote: sign around a name, doubled inside it.
        text_type, number_type, time_type: types of casts; ``time_type`` has no zone.
        as_text: a value's text without U+0000, which is compared by its code points whatever its column's collation is.
        normal: a text in Unicode NFC; "" where the engine has no such function.
        blanks: a text of all signs that ``str.strip`` removes.
        to_number: a decimal text's number, an infinity beyond float64. It must not stop the statement for any decimal.
        to_time: a value's time without a zone; NULL, and not a stop of the statement, where the type cannot hold it.
        type_of: a column's type as a text.
        text_of: a text's literal where it holds other signs than letters, digits and spaces.
        matches: a condition that a regular expression is found in a text.
        integers: patterns (``LIKE``) of types of integers that fit 64 bits.
        numbers: patterns of types that a cast to ``number_type`` converts without a further rounding.
        decimals: patterns of types that are cast over their text.
        singles: patterns of floats whose text may be another number than their value.
        texts, truths, times: patterns of types of texts, of booleans, and of dates and times without a zone.
        zoned: patterns of types of times that have the session's zone, and a condition that this zone is UTC.
        name_bytes: maximum bytes of a name.
        substituted: signs that the engine replaces anywhere in a statement, so that no name may hold them.
    """

    label: str
    quote: str
    text_type: str
    as_text: str
    number_type: str
    time_type: str
    normal: str
    blanks: str
    to_number: str
    to_time: str
    type_of: str
    text_of: Callable[[str], str]
    matches: str
    integers: tuple[str, ...]
    numbers: tuple[str, ...]
    decimals: tuple[str, ...]
    singles: tuple[str, ...]
    texts: tuple[str, ...]
    truths: tuple[str, ...]
    times: tuple[str, ...]
    zoned: tuple[tuple[str, ...], str] = ((), "")
    name_bytes: int | None = None
    substituted: str = ""

    def name(self, name: str) -> str:
        """Quote the name of a column or table.

        Raises:
            DataError: the name has a sign that no statement may hold, or is too long for the engine.
        """
        if not name or not name.isprintable():
            raise DataError(f"{name!r:.60} cannot be a name in SQL; use printable characters, at least one")
        if self.substituted and self.substituted in name:
            raise DataError(
                f"{name!r:.60} holds {self.substituted}, which {self.label} substitutes; rename it in a view"
            )
        if self.name_bytes is not None and len(name.encode()) > self.name_bytes:
            raise DataError(
                f"{name!r:.80} has more than {self.name_bytes} bytes, and {self.label} would truncate it to another "
                "name; use a shorter one in the plan and in a view"
            )
        return self.quote + name.replace(self.quote, 2 * self.quote) + self.quote

    def table(self, name: str | Sequence[str]) -> str:
        """Quote a table's name, whose parts are divided by points or given as a sequence."""
        parts = name.split(".") if isinstance(name, str) else name
        if not isinstance(parts, list | tuple) or not parts or not all(isinstance(each, str) for each in parts):
            raise DataError(f"table must be a name such as 'hospital.patients', or its parts, got {name!r:.60}")
        return ".".join(map(self.name, parts))

    def text(self, text: str) -> str:
        """Return a text's literal, which stands for this text under every setting of the engine.

        Raises:
            DataError: the text has a sign that no statement may hold.
        """
        if not (text + " ").isprintable():
            raise DataError(f"{text!r:.60} cannot be a text in SQL; use printable characters")
        return f"'{text}'" if _PLAIN_TEXT.fullmatch(text) else self.text_of(text)

    def number(self, number: float) -> str:
        """Return a literal of exactly this float64."""
        return f"CAST('{float(number)!r}' AS {self.number_type})"

    def is_type(self, column: str, patterns: Iterable[str]) -> str:
        """Return the condition that a quoted column's type matches one of these patterns."""
        kind = self.type_of.format(column)
        plain = [each for each in patterns if "%" not in each]
        like = [each for each in patterns if "%" in each]
        found = [f"{kind} IN ({self.listed(plain)})"] if plain else []
        found += [f"{kind} LIKE '{each}'" for each in like]
        return f"({' OR '.join(found)})" if found else "(1 = 0)"

    def listed(self, texts: Iterable[str]) -> str:
        """Return literals of texts, divided by commas."""
        return ", ".join(map(self.text, texts))

    def holds(self, text: str, pattern: str) -> str:
        """Return the condition that a regular expression is found in a text."""
        return self.matches.format(text, f"'{pattern}'")

    def stripped(self, text: str) -> str:
        """Return a text without the blanks at its ends."""
        return f"TRIM(BOTH {self.blanks} FROM {text})"

    def folded(self, text: str) -> str:
        """Return a text with its ASCII letters in lower case, whatever the engine's language is."""
        return f"translate({text}, '{_UPPER}', '{_LOWER}')"


def _doubled(text: str) -> str:
    return "'" + text.replace("'", "''") + "'"


def _escaped(text: str) -> str:
    """Escape backslashes, which an old setting of PostgreSQL reads in plain literals."""
    plain = _doubled(text)
    return "E" + plain.replace("\\", "\\\\") if "\\" in text else plain


def _as_bytes(text: str) -> str:
    """Return a literal of bytes: Spark's settings decide how it reads backslashes, quotes and ``${`` in a text."""
    return f"decode(X'{text.encode().hex()}', 'UTF-8')" if set(text) & {"'", "\\", "$"} else f"'{text}'"


def _chr(texts: Iterable[str]) -> str:
    return "(" + " || ".join(f"chr({ord(each)})" for each in texts) + ")"


_INTEGERS = ("TINYINT", "SMALLINT", "INTEGER", "BIGINT", "UTINYINT", "USMALLINT", "UINTEGER")

DIALECTS: Mapping[str, Dialect] = {
    "duckdb": Dialect(
        label="DuckDB",
        quote='"',
        text_type="VARCHAR",
        as_text="(replace(CAST({0} AS VARCHAR), chr(0), '') COLLATE C)",
        number_type="DOUBLE",
        time_type="TIMESTAMP",
        normal="(nfc_normalize({0}) COLLATE C)",
        blanks=_chr(_BLANKS),
        to_number="TRY_CAST({0} AS DOUBLE)",
        to_time="TRY_CAST({0} AS TIMESTAMP)",
        type_of="typeof({0})",
        text_of=_doubled,
        matches="regexp_matches({0}, {1})",
        integers=_INTEGERS,
        numbers=(*_INTEGERS, "DOUBLE", "BOOLEAN"),
        decimals=("UBIGINT", "HUGEINT", "UHUGEINT", "DECIMAL(%)"),
        singles=("FLOAT",),
        texts=("VARCHAR", "ENUM(%)"),
        truths=("BOOLEAN",),
        times=("DATE", "TIMESTAMP", "TIMESTAMP_S", "TIMESTAMP_MS"),
    ),
    "postgres": Dialect(
        label="PostgreSQL",
        quote='"',
        text_type="text",
        as_text='(CAST({0} AS text) COLLATE "C")',
        number_type="double precision",
        time_type="timestamp",
        normal="normalize({0}, NFC)",
        blanks=_chr(_BLANKS),
        # A cast to double precision stops the statement beyond its range, and one to numeric at large exponents. The
        # bounds are halfway from the largest float64 to 2^1024, and from 0 to the smallest float64.
        to_number=(
            "CASE WHEN {0} ~ '^[+-]?[0.]*([eE]|$)' OR {0} ~ '[eE]-0*[1-9][0-9]{{4}}' THEN 0"
            " WHEN {0} ~ '[eE][+]?0*[1-9][0-9]{{4}}' THEN double precision 'Infinity'"
            f" WHEN abs(CAST({{0}} AS numeric)) >= {2**1024 - 2**970} THEN double precision 'Infinity'"
            " WHEN abs(CAST({0} AS numeric)) <= 2.47032822920623273e-324 THEN 0 ELSE CAST({0} AS double precision) END"
        ),
        # A date beyond the year 9999 has a longer text; a timestamp cannot hold every such date.
        to_time="CASE WHEN pg_typeof({0}) <> 'date'::regtype OR length({0}::text) <= 10 THEN {0}::timestamp END",
        type_of="CAST(pg_typeof({0}) AS text)",
        text_of=_escaped,
        matches="{0} ~ {1}",
        integers=("smallint", "integer", "bigint"),
        numbers=("smallint", "integer", "bigint"),
        decimals=("numeric",),
        singles=("real", "double precision"),
        texts=("text", "character varying", "character"),
        truths=("boolean",),
        times=("date", "timestamp without time zone"),
        name_bytes=_POSTGRES_NAME_BYTES,
    ),
    "spark": Dialect(
        label="Spark",
        quote="`",
        text_type="STRING",
        as_text="replace(CAST({0} AS STRING), decode(X'00', 'UTF-8'), '')",
        number_type="DOUBLE",
        time_type="TIMESTAMP_NTZ",
        normal="",
        blanks=f"decode(X'{''.join(_BLANKS).encode().hex()}', 'UTF-8')",
        to_number="TRY_CAST({0} AS DOUBLE)",
        to_time="TRY_CAST({0} AS TIMESTAMP_NTZ)",
        type_of="typeof({0})",
        text_of=_as_bytes,
        matches="{0} RLIKE {1}",
        integers=("tinyint", "smallint", "int", "bigint"),
        numbers=("tinyint", "smallint", "int", "bigint", "double", "decimal(%)", "boolean"),
        decimals=(),
        singles=("float",),
        texts=("string", "varchar(%)", "char(%)"),
        truths=("boolean",),
        times=("date", "timestamp_ntz"),
        zoned=(("timestamp",), "current_timezone() IN ('UTC', 'Etc/UTC', 'Z')"),
        substituted="${",
    ),
}
"""Dialects by name."""


def dialect_of(name: str) -> Dialect:
    """Return a dialect by name.

    Raises:
        DataError: there is no such dialect.

    Example:
        >>> from privstats.contrib.parts.sql_dialects import dialect_of
        >>> dialect_of("postgres").name('sex"; DROP TABLE t; --'), dialect_of("spark").text("it's")
        ('"sex""; DROP TABLE t; --"', "decode(X'69742773', 'UTF-8')")
    """
    if name not in DIALECTS:
        raise DataError(f"dialect must be one of {', '.join(DIALECTS)}, got {name!r:.40}")
    return DIALECTS[name]
