"""Guess in which form the values of a column are written, from all of them: for a rehearsal, and for a holder's look.

A study declares these forms in ``columns.toml`` and never guesses them, because a guess follows from all records.
"""

from __future__ import annotations

import math
import re
from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from shlex import quote
from typing import Any

import numpy as np
import tomli_w

from privstats.errors import SchemaError
from privstats.intake.columns import Readings
from privstats.intake.declared.columns import days_of
from privstats.intake.declared.dates import DateForm
from privstats.intake.gap_words import is_gap_word
from privstats.intake.meaning import is_decimal
from privstats.transforms import Column, Dates, Numeric, Truth

_AFFIXED = re.compile(
    r"([<>\u2264\u2265]=?\s*)?[+-]?(?:[0-9]+\.?[0-9]*|\.[0-9]+)(?:[eE][+-]?[0-9]+)?(\s*[^0-9\s.,+-][^0-9]{0,20})?"
)
_SIGNED = re.compile(
    r"(?:[<>\u2264\u2265]=?\s*)?([+-]?[0-9][0-9.,'\u2019 \u00a0\u2009\u202f]*?)(?:\s*[^0-9\s.,'\u2019+-][^0-9]{0,20})?"
)
_CODE = re.compile(r"0[0-9]+(?:\.[0-9]+)?")
_POWER = re.compile(r"[0-9]+E[0-9]+")
_GROUPS = r"[+-]?[0-9]{{1,3}}(?:{0}[0-9]{{3}})+(?:{1}[0-9]+)?"
_FIGURES = "[0-9][0-9.,]*"
_MARKED = {
    "a thousands sign ',': pass --thousands ,": re.compile(_GROUPS.format(",", r"\.")),
    "a decimal comma: pass --decimal ,": re.compile(r"[+-]?[0-9]+,[0-9]+"),
    "a thousands sign '.': pass --decimal , and --thousands .": re.compile(_GROUPS.format(r"\.", ",")),
    "an apostrophe as thousands sign: pass --thousands": re.compile(_GROUPS.format("['\u2019]", "[.,]")),
    "blanks as thousands signs: pass --thousands ' '": re.compile(_GROUPS.format("[ \u00a0\u2009\u202f]", "[.,]")),
    "a sign of money: write the number alone": re.compile(rf"(?:[$€£¥]|[A-Z]{{3}}) ?{_FIGURES}|{_FIGURES} ?[$€£¥]"),
    "the minus sign U+2212: write -": re.compile(f"\u2212{_FIGURES}"),
    "a minus sign at the end, as SAP writes: write it before the number": re.compile(f"{_FIGURES}-"),
    "a sign of HTML such as &lt;: export plain text": re.compile(f"&[lg]t;=? ?{_FIGURES}"),
    'Excel\'s ="...": write the number alone': re.compile(f'="{_FIGURES}"'),
    "a slash between two of them, as blood pressures have: write a column for each": re.compile(
        r"[0-9]{2,3} ?/ ?[0-9]{2,3}(?: ?[^0-9\s][^0-9]{0,20})?"
    ),
    "a sign before them, such as ~ or ca.: write the number alone": re.compile(
        rf"(?:[~\u2248%]|ca\.?|circa|about|approx\.?) ?{_FIGURES}"
    ),
    "a dash between two, as ranges and ids have: write a column for each, or name ids with --persons": re.compile(
        "[0-9]{1,3}(?:[.,][0-9]+)? ?[-\u2013] ?[0-9]{1,3}(?:[.,][0-9]+)?"
    ),
    "a spread behind \u00b1: write a column for each": re.compile(rf"{_FIGURES} ?(?:\u00b1|\+/-) ?{_FIGURES}"),
    "a colon between two of them, as titres and times of day have: write one number": re.compile(
        "[<>\u2264\u2265]?=? ?[0-9]+:[0-9]+(?::[0-9]+)?"
    ),
    "a power of ten, such as x10^3: write 1.2e3": re.compile(
        rf"{_FIGURES} ?[x*\u00d7\u00b7] ?10(?:\^|\*\*|E)?[+-]?[0-9]+"
    ),
    "brackets around them: write a minus sign, or the number alone": re.compile(rf"\({_FIGURES}\)"),
    "two units in one text, such as 5y 3m: write one number": re.compile(
        "[0-9]+ ?(?:y|yrs?|years?|m|mo|months?|w|d|h|kg|lbs?|st)[.,]? ?[0-9]+ ?(?:m|mo|months?|w|d|min|s|g|lbs?|oz)[.]?"
    ),
    "feet and inches: write one number": re.compile("[0-9]+ ?['\u2019\u2032] ?[0-9.]+ ?[\"\u201d\u2033]?"),
    "a fraction, such as 5 1/2: write 5.5": re.compile("[0-9]+ [0-9]/[0-9]+"),
}
_DATE = "(?:[0-3]?[0-9]|(?:19|20)[0-9]{2})[./-][0-3]?[0-9][./-](?:19|20)?[0-9]{2}"
_DATED = {
    "months without a day: write ISO dates, such as 1993-10-01": re.compile(
        r"(?:0?[1-9]|1[0-2])[./-](?:19|20)[0-9]{2}|(?:19|20)[0-9]{2}[./-](?:0?[1-9]|1[0-2])"
    ),
    "dates with the name of a month: write ISO dates, such as 2019-02-09": re.compile(
        r"(?:[^\W\d]{3,9}\.? [0-9]{1,2},?|[0-9]{1,2}\.? [^\W\d]{3,9}\.?) [0-9]{4}(?: .{0,20})?"
    ),
    "dates with other words around them: write ISO dates, such as 2019-02-09": re.compile(
        rf"[^\W\d]{{2,10}}\.?,? {_DATE}(?:[ T,].{{0,20}})?|{_DATE}[ T,].{{1,20}}|[0-9]{{8}}T[0-9]{{4,6}}Z?"
    ),
}
"""Forms of dates that no declaration reads, with the remedy."""
_ORDERS = {".": ("DD.MM",), "/": ("MM/DD", "DD/MM"), "-": ("DD-MM", "MM-DD"), " ": ("DD MM",)}
_FORMS = (
    *(f"{order}{mark}{year}" for mark, orders in _ORDERS.items() for order in orders for year in ("YYYY", "YY")),
    *(f"DD{mark}MON{mark}{year}" for mark in ("", "-", " ") for year in ("YYYY", "YY")),
    "YYYY/MM/DD", "YYYY.MM.DD", "YYYYMMDD",
)  # fmt: skip
_DAYS = {form: DateForm.of("a date", form) for form in _FORMS}
_ISO_HOUR = re.compile(r"[0-9]{4}-[0-9]{2}-[0-9]{2}T([0-9]{2}:00):00")
_DAY = re.compile(r"[0-9]{4}-[0-9]{2}-[0-9]{2}")  # midnight of a naive time, too
_PAIR = 2
_ZONES = 2
"""Hours of UTC at which one zone has midnight: of winter and of summer."""
_KEYS = ("gaps", "suffix", "censored", "written", "as_text")
EXCEL = "days since 1899-12-30"
_FIRST_DAY, _LAST_DAY, _SPREAD = 20_000, 60_000, 200
_LONGEST_DATE = 40
_NO_QUANTITY = 12
"""Power of ten from which 1E30 is a code."""
_MOSTLY, _NEARLY_ALL, _ONE_UNIT = 0.5, 0.95, 0.9
GAP_CODES = frozenset(float(f"{sign}{digit * times}") for sign in ("", "-") for digit in "89" for times in range(1, 7))
"""Numbers that studies write for a gap: 8, 9, 99, -9 and so on."""
_BELOW, _ABOVE = "<\u2264", ">\u2265"


def gap_words(texts: Mapping[str, int], stated: Collection[str] = ()) -> tuple[str, ...]:
    """Return the texts that look like gaps or are stated as gaps, the commonest first."""
    gaps = [text for text in texts if text in stated or is_gap_word(text)]
    return tuple(sorted(gaps, key=lambda text: (-texts[text], text)))


def bare_number(text: str) -> str:
    """Return what a text has besides a sign of censoring and a suffix, before its decimal mark is known.

    Example:
        >>> from privstats.workflows.forms import bare_number
        >>> [bare_number(text) for text in ("<0,5 mg/l", "1.299,5 mg/l", "39,9%", "28.03.19", "E11,5")]
        ['0,5', '1.299,5', '39,9', '28.03.19', 'E11,5']
    """
    match = _SIGNED.fullmatch(text)
    return match[1] if match else text


def bare_numbers(texts: Mapping[str, int]) -> Counter[str]:
    """Count texts by what they have besides signs and suffixes."""
    bare = Counter[str]()
    for text, count in texts.items():
        bare[bare_number(text)] += count
    return bare


def odd_codes(values: Iterable[float]) -> list[float]:
    """Return the values that look like gap codes: those of :data:`GAP_CODES` that a step above 1 separates.

    Example:
        >>> from privstats.workflows.forms import odd_codes
        >>> odd_codes([1, 2, 9]), odd_codes([0, 1, -9, 8, 9]), odd_codes(range(10)), odd_codes([8, 9])
        ([9], [-9, 8, 9], [], [])
    """
    every = sorted(values)
    rest = [value for value in every if value not in GAP_CODES]
    if len(rest) < _PAIR:
        return []
    below = [value for value in every if value < rest[0]]
    above = [value for value in every if value > rest[-1]]
    low = below if below and below[-1] < rest[0] - 1 else []
    return low + (above if above and above[0] > rest[-1] + 1 else [])


def are_codes(texts: Iterable[str]) -> bool:
    """Return whether these texts are codes of which a number would lose digits or letters: 042, or 1E30 beside BA00.

    Numbers that are filled up with zeros to one width are no codes.

    Example:
        >>> from privstats.workflows.forms import are_codes
        >>> are_codes(["042", "42"]), are_codes(["1E30", "BA00"]), are_codes(["1E5", "2"]), are_codes(["0.5", "12"])
        (True, True, False, False)
    """
    every = set(texts)
    words = any(re.fullmatch(r"[A-Z0-9.]*[A-Z][A-Z0-9.]*", each) and not _POWER.fullmatch(each) for each in every)
    powers = [each for each in every if _POWER.fullmatch(each)]
    beyond = any(int(each.rpartition("E")[2][:3]) >= _NO_QUANTITY for each in powers)
    padded = len({len(each) for each in every if each}) == 1 and all(each.isdigit() for each in every if each)
    return (any(map(_CODE.fullmatch, every)) and not padded) or (bool(powers) and (words or beyond))


def numeric_form(name: str, numbers: int, texts: Mapping[str, int], stated: Collection[str] = ()) -> Numeric | None:
    """Return a column of numbers with signs around them, if most values are such; gap words count for nothing.

    Args:
        numbers: count of values that are plain numbers.
        texts: count of each other text.
        stated: further gap words.

    Example:
        >>> from privstats.workflows.forms import numeric_form
        >>> numeric_form("hct", 10, {"39.9%": 50, "<20%": 2, "-": 5})
        Numeric(name='hct', edges=None, gaps=('-',), unit='', suffix='%', censored=True)
    """
    gaps = gap_words(texts, stated)
    rest = {text: count for text, count in texts.items() if text not in gaps}
    matches = {text: match for text in rest if (match := _AFFIXED.fullmatch(text))}
    like = numbers + sum(rest[text] for text in matches)
    if not like or like < _MOSTLY * (numbers + sum(rest.values())):
        return None
    suffixes = Counter[str]()
    for text, match in matches.items():
        suffixes[(match[2] or "").strip()] += rest[text] if match[2] else 0
    suffix, count = suffixes.most_common(1)[0] if suffixes else ("", 0)
    one = count >= _ONE_UNIT * suffixes.total() > 0
    return Numeric(name, gaps=gaps, suffix=suffix if one else "", censored=any(match[1] for match in matches.values()))


def date_form(
    name: str,
    numbers: Any,
    texts: Mapping[str, int],
    stated: Collection[str] = (),
    least: float = _NEARLY_ALL,
) -> Dates | None:
    """Return a column of dates in one form, if nearly all dates are such or ISO dates, which every form reads.

    Gap words count for nothing. A text such as 31.02.2020 counts as one of the form, but not for at least half of all.

    Args:
        numbers: the values that are numbers; with ISO dates they may be Excel's days.
        texts: count of each other text.
        stated: further gap words.
        least: minimum share of dates among the values that are no gaps.

    Example:
        >>> from privstats.workflows.forms import date_form
        >>> date_form("seen", np.array([]), {"28.03.19": 3, "01.04.19": 4}).written
        'DD.MM.YY'
    """
    gaps = gap_words(texts, stated)
    rest = {text: count for text, count in texts.items() if text not in gaps}
    given = len(numbers) + sum(rest.values())
    short = sum(count for text, count in rest.items() if text[:1].isdigit() and len(text) <= _LONGEST_DATE)
    needed = max(least * given, _NEARLY_ALL * (len(numbers) + short))
    iso = sum(count for text, count in rest.items() if _is_iso(text))
    if iso >= _NEARLY_ALL * given > 0:
        return Dates(name, gaps=gaps)
    if iso and iso + len(numbers) >= _NEARLY_ALL * given and like_excel_days(numbers):
        return Dates(name, gaps=gaps, written=EXCEL)
    if len(numbers) + short < needed:
        return None
    impossible = {text: count for text, count in rest.items() if not _is_date(text)}
    for form, days in sorted(_DAYS.items(), key=lambda item: -_fits(item[1], rest)):
        of_numbers = int(np.isfinite(days.days_of_numbers(numbers)).sum()) if days.compact and len(numbers) else 0
        own = _fits(days, rest) + of_numbers
        shaped = sum(count for text, count in impossible.items() if days.pattern and days.pattern.fullmatch(text))
        if own and own + iso >= _MOSTLY * given and own + iso + shaped >= needed:
            return Dates(name, gaps=gaps, written=form)
    return Dates(name, gaps=gaps) if iso >= needed > 0 else None


def other_orders(column: Dates, texts: Mapping[str, int]) -> tuple[str, ...]:
    """Return the forms that fit a column's texts as well: 03/04/2019 alone does not tell day from month."""
    best = _fits(_DAYS[column.written], texts) if column.written in _DAYS else 0
    return tuple(form for form, days in _DAYS.items() if form != column.written and 0 < best == _fits(days, texts))


def why_no_number(numbers: int, texts: Mapping[str, int]) -> str | None:
    """Return a sentence where most values look like numbers or dates in a form that was not read."""
    given = numbers + sum(texts.values())
    for what, form in _DATED.items():
        like = sum(count for text, count in texts.items() if form.fullmatch(text))
        if like >= _NEARLY_ALL * given and not _dates_in(texts):
            return f"{like:,} of {given:,} look like {what}"
    for what, form in _MARKED.items():
        like = sum(count for text, count in texts.items() if form.fullmatch(text))
        if like and numbers + like >= _MOSTLY * given:
            return f"{like:,} of {given:,} look like numbers with {what}"
    return several_dates(numbers, texts, _MOSTLY)


def several_dates(
    numbers: int, texts: Mapping[str, int], least: float = _NEARLY_ALL, *, serials: int = 0
) -> str | None:
    """Return a sentence where a minimum share of the values are dates, which no single form reads.

    Args:
        serials: number of values that may be Excel's days, next to dates that are texts.

    Example:
        >>> from privstats.workflows.forms import several_dates
        >>> several_dates(0, {"28.03.2019": 3, "04/28/2019": 4})
        '7 of 7 look like dates in several forms: write one form, or ISO dates'
    """
    given, dates = numbers + sum(texts.values()), _dates_in(texts)
    dates += serials * bool(dates)
    if not dates or dates < least * given:
        return None
    return f"{dates:,} of {given:,} look like dates in several forms: write one form, or ISO dates"


def _dates_in(texts: Mapping[str, int]) -> int:
    """Count the texts that are dates in any form that a declaration reads."""
    return sum(count for text, count in texts.items() if _is_date(text))


def _is_date(text: str) -> bool:
    if not text[:1].isdigit() or len(text) > _LONGEST_DATE:
        return False
    return _is_iso(text) or any(math.isfinite(days.days_in(text)) for days in _DAYS.values())


def _is_iso(text: str) -> bool:
    return math.isfinite(days_of(text))


def like_excel_days(numbers: Any) -> bool:
    """Return whether numbers may be Excel's dates: integers of the years 1954 to 2064, over some months."""
    known = np.asarray(numbers)
    inside = len(known) > 0 and bool((known % 1 == 0).all() and known.min() >= _FIRST_DAY and known.max() <= _LAST_DAY)
    return inside and len(np.unique(known)) > _SPREAD // 10 and float(np.ptp(known)) > _SPREAD


def declared_remedy(column: Column, unread: Mapping[str, int]) -> str:
    """Return how to have a column's unreadable values read, as a sentence; "" where nothing is known.

    Example:
        >>> from privstats.workflows.forms import declared_remedy
        >>> declared_remedy(ps.Numeric("crp"), {"-": 290, "<0.5": 10})
        'To read them, state gaps = ["-"], censored = true in columns.toml'
    """
    form: Column | None = None
    others: tuple[str, ...] = ()
    if isinstance(column, Numeric):
        if (why := why_no_number(0, unread)) is not None:
            return why
        form = numeric_form(column.name, 0, unread) or numeric_form(column.name, 0, _pointed(unread))
        form = form or Numeric(column.name, gaps=gap_words(unread))
    elif isinstance(column, Dates):
        form = date_form(column.name, np.empty(0), unread) or Dates(column.name, gaps=gap_words(unread))
        if not form.written and like_excel_days([float(text) for text in unread if is_decimal(text)]):
            form = replace(form, written=EXCEL)
        others = other_orders(form, unread)
    lines = "" if form is None else " or ".join((toml_of(form), *map(repr, others)))
    if isinstance(column, Truth):
        lines = _truth_lines(column, unread)
    return f"To read them, state {lines} in columns.toml" if lines else ""


def _pointed(texts: Mapping[str, int]) -> dict[str, int]:
    """Return the texts with decimal points: a column without signs keeps a comma in <0,01, whatever its file states."""
    return {
        text.replace(",", ".") if re.fullmatch("[+-]?[0-9]+,[0-9]+", bare_number(text)) else text: count
        for text, count in texts.items()
    }


def _truth_lines(column: Truth, unread: Mapping[str, int]) -> str:
    """Return the gaps, and the pair in both orders, because no text shows which of the two means no."""
    gaps = gap_words(unread)
    rest = sorted(set(unread) - set(gaps))
    two = rest if len(rest) == _PAIR else sorted(unread)
    pairs = [] if column.values or len(two) != _PAIR else [*_pairs(column.name, two)]
    either = ", or " if two != rest else ", "  # two texts, one of them a gap word: a gap, or one of the pair
    shown = " or ".join(each if not place else each.partition(" = ")[2] for place, each in enumerate(pairs))
    parts = (toml_of(Truth(column.name, gaps=gaps)), f"{shown}, what means no first," if shown else "")
    return either.join(filter(None, parts))


def _pairs(name: str, two: Sequence[str]) -> Iterator[str]:
    """Yield two texts as declared values of a truth, in each order that a plan accepts."""
    values: Any = tuple(int(each) if each.isdecimal() else each for each in two)
    for pair in (values, values[::-1]):
        with suppress(SchemaError):
            yield _lines_of({"values": Truth(name, values=pair).to_plan()["values"]})


def form_remarks(column: Column, readings: Readings, written: Sequence[Any] = ()) -> Iterator[str]:
    """Yield what a person should confirm of a form that was guessed.

    Args:
        written: the values as their file has them, before its decimal mark was read; the readings' texts if empty.
    """
    texts = Counter(readings.texts.values())
    if words := [word for word in column.gaps if word in texts]:
        counts = ", ".join(f"{word} ({texts[word]:,})" for word in words)
        yield f"of {len(readings.numbers):,} values, read as a gap: {counts}; is that so?"
    if isinstance(column, Numeric) and column.censored and (shown := _censored(readings, written)):
        yield f"values such as {shown} that number; is that what your study wants?"
    if isinstance(column, Dates) and (others := other_orders(column, texts)):
        yield f"read as {column.written}, and {' or '.join(others)} fits as well: which is right?"
    if isinstance(column, Numeric) and like_excel_days(readings.numbers[~np.isnan(readings.numbers)]):
        yield f"read as numbers; if they are Excel's dates, state kind dates, written = {EXCEL!r} in columns.toml"


def _censored(readings: Readings, written: Sequence[Any]) -> str:
    """Return the commonest value below and above a limit as the file has it, and how it is read; "" without any."""
    texts, parts = readings.texts, []
    for signs, side in ((_BELOW, "below"), (_ABOVE, "above")):
        counts = Counter(text for text in texts.values() if text[0] in signs)
        if counts:
            commonest, count = counts.most_common(1)[0]
            place = next(place for place, text in texts.items() if text == commonest)
            shown = str(written[place]).strip() if len(written) else commonest
            parts.append((f"{shown} ({count:,})", f"just {side}"))
    if len(parts) == _PAIR:
        (low, below), (high, above) = parts
        return f"{low} and {high} are read as {below} and {above}"
    return f"{parts[0][0]} are read as {parts[0][1]}" if parts else ""


def gap_code_question(name: str, codes: Mapping[float, int], records: int) -> str:
    """Return a question about numbers that may be gap codes, with the option of a rehearsal that reads them so.

    Args:
        codes: number of records with each code.

    Example:
        >>> from privstats.workflows.forms import gap_code_question
        >>> gap_code_question("ill", {9: 30}, 1200)
        '9 is in 30 of 1,200 records: a gap code? Then pass --gaps ill=9'
    """
    shown = ", ".join(f"{code:.15g} is in {count:,}" for code, count in codes.items())
    options = " ".join(f"--gaps {quote(f'{name}={code:.15g}')}" for code in codes)
    return f"{shown} of {records:,} records: a gap code? Then pass {options}"


def toml_of(column: Column) -> str:
    """Return a column's form as lines of ``columns.toml``; "" where it has none.

    Example:
        >>> from privstats.workflows.forms import toml_of
        >>> toml_of(ps.Numeric("crp", gaps=("-",), censored=True))
        'gaps = ["-"], censored = true'
    """
    return _lines_of(form_of(column))


def form_of(column: Column) -> dict[str, Any]:
    """Return the keys of a column's table in ``columns.toml`` that state its form.

    Example:
        >>> from privstats.workflows.forms import form_of
        >>> form_of(ps.Dates("seen", written="DD.MM.YYYY"))
        {'written': 'DD.MM.YYYY'}
    """
    return {key: value for key, value in column.to_plan().items() if key in _KEYS}


def _lines_of(stated: Mapping[str, Any]) -> str:
    lines = [" ".join(tomli_w.dumps({key: value}).split()) for key, value in stated.items()]
    return ", ".join(lines).replace("[ ", "[").replace(", ]", "]")


def zone_remark(texts: Collection[str]) -> str:
    """Return a question where all times share one or two full hours, as midnight of another time zone has; else "".

    Dates without a time may be among them.

    Example:
        >>> from privstats.workflows.forms import zone_remark
        >>> zone_remark(["2019-03-27T23:00:00"]).partition(". ")[0]
        'all are at 23:00'
    """
    if not (hours := _only_hours(texts)):
        return ""
    which = "those with a time" if any(_DAY.fullmatch(text) for text in texts) else "all"
    return (
        f"{which} are at {hours}. If that is midnight of your time zone, these are dates, and dates without a zone of "
        'another hospital differ from them: state written = "ISO in Europe/Berlin", with your zone, in columns.toml, '
        "or export dates without a time"
    )


def _only_hours(texts: Iterable[str]) -> str:
    """Return the times of day where all times share one or two full hours, none of them midnight; else ""."""
    timed = [text for text in texts if not _DAY.fullmatch(text)]
    hours = {match[1] if (match := _ISO_HOUR.fullmatch(text)) else "" for text in timed}
    return " or ".join(sorted(hours)) if 0 < len(hours) <= _ZONES and "" not in hours else ""


def _fits(days: DateForm, texts: Mapping[str, int]) -> int:
    return sum(count for text, count in texts.items() if days.days_in(text) == days.days_in(text))
