"""The exports: the same sixty patients, as some thirty programs write them.

``python -m tests.exports.programs FOLDER`` writes them as files. No patient is real.
"""

from __future__ import annotations

import csv
import io
import math
import shlex
import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import date, timedelta
from pathlib import Path
from typing import Any

from privstats.printable.command_line import command_line
from privstats.workflows.rehearsal import unusual

PATIENTS = 60
AGE = [40 + 7 * k % 45 for k in range(PATIENTS)]
CRP = [((37 * k) % 500 + 5) / 10 * (100 if k % 5 == 0 else 1) for k in range(PATIENTS)]
SMOKER = [(k * k + k // 7) % 3 == 0 for k in range(PATIENTS)]
SEEN = [date(2019, 1, 1) + timedelta(days=13 * k % 700) for k in range(PATIENTS)]
ILL = [(k * k + AGE[k]) % 3 == 0 for k in range(PATIENTS)]
GAP = [k % 9 == 4 for k in range(PATIENTS)]
DAYS = [float((each - date(1970, 1, 1)).days) for each in SEEN]
ICD11, ICD9 = ("1E30", "2E60", "5A11", "BA00", "1E50"), ("042", "42", "250.0", "250.00", "V30")
NOTE = 'seen {k}, "stable"\nsee lab:\n50,2.5,yes,x\n51,3.5,no,y\nend'

Words = Callable[[int], str]


def gapped(values: Sequence[float], off: Mapping[int, float] | None = None) -> list[float]:
    """The values with NaN for patients whose value is a gap."""
    return [math.nan if GAP[k] else (off or {}).get(k, value) for k, value in enumerate(values)]


def options_typed(file: Any) -> list[str]:
    """The words with which a command states how a file is written."""
    options = {f"--{name}": value for name, value in unusual(file.dialect).items()}
    return shlex.split(command_line(options=options))[1:]


@dataclass(frozen=True)
class Export:
    """One file.

    Attributes:
        data: its bytes.
        forms: of each column that must be read its kind, and the form that is declared for it.
        values: of a numeric or date column its values as numbers, NaN for a gap.
        left_out: of columns that are not read, words of the reason.
        unlabelled: patients whose outcome is a gap.
        lost: records that do not fit, which are named.
        refused: words of the refusal, where the file must be.
        options: the format that is detected.
    """

    data: bytes
    forms: Mapping[str, str] = field(default_factory=dict)
    values: Mapping[str, Sequence[float]] = field(default_factory=dict)
    target: str = "ill"
    left_out: Mapping[str, str] = field(default_factory=dict)
    unlabelled: tuple[int, ...] = ()
    lost: int = 0
    refused: str = ""
    options: str = ""


def columns(**words: Words) -> list[list[str]]:
    """A header and a row for each patient."""
    return [list(words), *([word(k) for word in words.values()] for k in range(PATIENTS))]


def naive(rows: Sequence[Sequence[str]], separator: str = ",", end: str = "\n", after: str = "") -> str:
    """Rows as a program without quotes writes them."""
    return "".join(separator.join(row) + after + end for row in rows)


def quoted(
    rows: Sequence[Sequence[Any]], separator: str = ",", end: str = "\n", quoting: Any = csv.QUOTE_MINIMAL
) -> str:
    """Rows as RFC 4180 states."""
    out = io.StringIO()
    csv.writer(out, delimiter=separator, lineterminator=end, quoting=quoting).writerows(rows)
    return out.getvalue()


def grouped(value: float, thousands: str, decimal: str) -> str:
    """A number with a thousands sign and one decimal."""
    return f"{value:,.1f}".replace(",", "T").replace(".", decimal).replace("T", thousands)


age: Words = lambda k: str(AGE[k])  # noqa: E731
crp: Words = lambda k: f"{CRP[k]:.1f}"  # noqa: E731
comma: Words = lambda k: crp(k).replace(".", ",")  # noqa: E731
ill: Words = lambda k: "yes" if ILL[k] else "no"  # noqa: E731
note: Words = lambda k: NOTE.format(k=k) if k % 5 == 0 else f"fine {k}"  # noqa: E731
NUMBERS = {"age": "numeric", "crp": "numeric"}
BOTH = {"age": AGE, "crp": CRP}


def pair(true: str, false: str) -> Words:
    """A truth in a program's words."""
    return lambda k: true if SMOKER[k] else false


def seen(form: str) -> Words:
    """A date in a program's form."""
    return lambda k: f"{SEEN[k]:{form}}"


def gaps(word: str, other: Words, more: str | None = None) -> Words:
    """A value, or the program's word for a gap."""
    return lambda k: (more if more and k % 2 else word) if GAP[k] else other(k)


def with_numbers(rows: list[list[str]], name: str = "", start: int = 0) -> list[list[str]]:
    """Rows behind row numbers whose column has this name."""
    return [[name, *rows[0]], *([str(place + start), *row] for place, row in enumerate(rows[1:]))]


def censored(k: int) -> str:
    """A laboratory's result, some of them below or above what it measures."""
    return "<0,01" if k % 4 == 1 else ">500" if k % 10 == 0 else comma(k)


plain = columns(age=age, crp=crp, ill=ill)
flags = columns(age=age, smoker=pair("Checked", "Unchecked"), ill=ill)
noted = columns(age=age, crp=crp, ill=ill, note=note)
LIMITS = {k: 0.01 for k in range(PATIENTS) if k % 4 == 1} | {k: 500.0 for k in range(PATIENTS) if k % 10 == 0}

EXPORTS: dict[str, Export] = {
    "pandas": Export(quoted(with_numbers(plain)).encode(), NUMBERS, BOTH, left_out={"column 1": "no name"}),
    "pandas_floats": Export(
        quoted(columns(age=lambda k: f"{AGE[k]}.0", smoker=pair("True", "False"), crp=gaps("", crp), ill=ill)).encode(),
        {**NUMBERS, "smoker": "truth"},
        {"age": AGE, "crp": gapped(CRP), "smoker": SMOKER},
    ),
    "r_write_csv": Export(
        quoted(with_numbers(columns(age=age, crp=gaps("NA", crp), ill=ill), start=1), quoting=csv.QUOTE_ALL).encode(),
        NUMBERS,
        {"age": AGE, "crp": gapped(CRP)},
        left_out={"column 1": "no name"},
    ),
    "r_write_csv2": Export(
        quoted(columns(age=age, crp=comma, ill=ill), ";").encode(), NUMBERS, BOTH, options="--separator ';' --decimal ,"
    ),
    "r_write_table": Export(
        naive([plain[0], *([str(k), *row] for k, row in enumerate(plain[1:]))]).encode(),
        refused="line 2 has 4 fields for 3 names (R's write.table",
    ),
    "r_dates": Export(
        quoted(columns(age=age, seen=seen("%Y-%m-%d"), ill=ill)).encode(),
        {"age": "numeric", "seen": "dates"},
        {"seen": DAYS},
    ),
    "excel_german": Export(
        (
            "sep=;\r\n"
            + naive(
                columns(
                    age=age,
                    crp=gaps("#DIV/0!", lambda k: grouped(CRP[k], ".", ",")),
                    smoker=pair("WAHR", "FALSCH"),
                    größe=seen("%d.%m.%Y"),
                    ill=ill,
                ),
                ";",
                "\r\n",
                ";;",
            )
        ).encode("cp1252"),
        {
            "age": "numeric",
            "crp": 'numeric gaps = ["#DIV/0!"]',
            "smoker": "categories",
            "größe": 'dates written = "DD.MM.YYYY"',
        },
        {"age": AGE, "crp": gapped(CRP), "größe": DAYS},
        left_out={"column 6": "no name", "column 7": "no name"},
        options="--encoding cp1252 --separator ';' --decimal , --thousands .",
    ),
    "excel_german_short_dates": Export(
        naive(columns(age=age, seen=seen("%d.%m.%y"), ill=ill), ";", "\r\n").encode(),
        {"age": "numeric", "seen": 'dates written = "DD.MM.YY"'},
        {"seen": DAYS},
        options="--separator ';'",
    ),
    "excel_french": Export(
        naive(
            columns(
                age=age,
                crp=gaps("#N/A", lambda k: grouped(CRP[k], "\u202f", ",")),
                smoker=pair("VRAI", "FAUX"),
                vu=seen("%d/%m/%Y"),
                ill=ill,
            ),
            ";",
            "\r\n",
        ).encode("utf-8-sig"),
        {"age": "numeric", "crp": "numeric", "smoker": "categories", "vu": 'dates written = "DD/MM/YYYY"'},
        {"age": AGE, "crp": gapped(CRP), "vu": DAYS},
        options="--separator ';' --decimal , --thousands ' '",
    ),
    "excel_swiss": Export(
        naive(columns(age=age, crp=lambda k: grouped(CRP[k], "'", "."), ill=ill), ";").encode(),
        NUMBERS,
        BOTH,
        options="--separator ';' --thousands ''\"'\"''",
    ),
    "excel_american": Export(
        quoted(
            columns(
                age=age,
                crp=lambda k: grouped(CRP[k], ",", "."),
                hct=lambda k: f"{AGE[k]}.5%",
                seen=lambda k: f"{SEEN[k].month}/{SEEN[k].day}/{SEEN[k].year}",
                smoker=pair("TRUE", "FALSE"),
                ill=ill,
            ),
            end="\r\n",
        ).encode(),
        {
            "age": "numeric",
            "crp": "numeric",
            "hct": 'numeric suffix = "%"',
            "seen": 'dates written = "MM/DD/YYYY"',
            "smoker": "truth",
        },
        {"age": AGE, "crp": CRP, "hct": [each + 0.5 for each in AGE], "seen": DAYS},
        options="--thousands ,",
    ),
    "excel_quoted_comma": Export(
        quoted(columns(age=age, crp=comma, ill=ill)).encode(), NUMBERS, BOTH, options="--decimal ,"
    ),
    "excel_old_mac": Export(naive(plain, end="\r").encode(), NUMBERS, BOTH),
    "excel_serial_days": Export(
        naive(columns(age=age, seen=lambda k: str((SEEN[k] - date(1899, 12, 30)).days), ill=ill)).encode(),
        {"age": "numeric"},
        {"age": AGE},
        left_out={"seen": "or as Excel's days"},
    ),
    "excel_unicode_text": Export(
        naive(plain, "\t", "\r\n").encode("utf-16"), NUMBERS, BOTH, options="--encoding utf-16-le --separator tab"
    ),
    "sql_server_unicode": Export(
        naive(columns(age=age, crp=crp, größe=age, ill=ill), ";", "\r\n").encode("utf-16-be"),
        {**NUMBERS, "größe": "numeric"},
        BOTH,
        options="--encoding utf-16-be --separator ';'",
    ),
    "redcap_raw": Export(
        quoted(
            columns(record_id=lambda k: str(k + 1), age=age, note=note, complete=lambda _: "2", ill=ill),
            quoting=csv.QUOTE_ALL,
        ).encode("utf-8-sig"),
        {"age": "numeric"},
        {"age": AGE},
        left_out={"record_id": "different values in", "note": "free text", "complete": "one value alone"},
    ),
    "redcap_labels": Export(
        quoted(
            [
                ["Record ID", "Age", "Risk (choice=smoker)", "Ill?"],
                *([str(k), *row] for k, row in enumerate(flags[1:])),
            ],
            quoting=csv.QUOTE_ALL,
        ).encode("utf-8-sig"),
        {"Age": "numeric", "Risk (choice=smoker)": "categories"},
        {"Age": AGE},
        target="Ill?",
        left_out={"Record ID": "different values in"},
    ),
    "redcap_notes": Export(quoted(noted).encode(), NUMBERS, BOTH, left_out={"note": "free text"}),
    "redcap_notes_like_records": Export(
        quoted(columns(age=age, ill=ill, note=lambda k: "a\n50,yes,b")).encode(),
        refused="lines 2 to 3 are one record with line breaks in quotes, or",
    ),
    "spss": Export(
        naive(columns(age=gaps(" ", age), crp=gaps("#NULL!", crp), seen=seen("%d-%b-%Y"), ill=ill)).encode("utf-8-sig"),
        {"age": "numeric", "crp": 'numeric gaps = ["#NULL!"]', "seen": 'dates written = "DD-MON-YYYY"'},
        {"age": gapped(AGE), "crp": gapped(CRP), "seen": DAYS},
    ),
    "stata_codes": Export(
        naive(
            columns(
                age=age,
                crp=gaps(".", crp, ".a"),
                seen=lambda k: f"{SEEN[k]:%d%b%Y}".lower(),
                ill=lambda k: "." if k == 7 else "1" if ILL[k] else "2",
            )
        ).encode(),
        {"age": "numeric", "crp": 'numeric gaps = [".", ".a"]', "seen": 'dates written = "DDMONYYYY"'},
        {"crp": gapped(CRP), "seen": DAYS},
        unlabelled=(7,),
    ),
    "sas": Export(
        naive(
            columns(age=gaps(".", age), crp=gaps(".", crp), seen=lambda k: f"{SEEN[k]:%d%b%Y}".upper(), ill=ill)
        ).encode(),
        {"age": 'numeric gaps = ["."]', "crp": 'numeric gaps = ["."]', "seen": 'dates written = "DDMONYYYY"'},
        {"age": gapped(AGE), "crp": gapped(CRP), "seen": DAYS},
    ),
    "sas_times": Export(
        naive(columns(age=age, seen=lambda k: f"{SEEN[k]:%d%b%Y}:12:00:00".upper(), ill=ill)).encode(),
        {"age": "numeric", "seen": 'dates written = "DDMONYYYY"'},
        {"seen": [each + 0.5 for each in DAYS]},
    ),
    "epic_like": Export(
        naive(
            columns(
                PAT_AGE=age,
                RESULT=gaps("See note", crp, "<0.5"),
                ADM=lambda k: f"{SEEN[k].month}/{SEEN[k].day}/{SEEN[k].year} 6:00 PM",
                ill=ill,
            ),
            "|",
            "\r\n",
            "|",
        ).encode(),
        {"PAT_AGE": "numeric", "RESULT": "numeric censored = true", "ADM": 'dates written = "MM/DD/YYYY"'},
        {"PAT_AGE": AGE, "ADM": [each + 0.75 for each in DAYS]},
        left_out={"column 5": "no name"},
        options="--separator '|'",
    ),
    "laboratory": Export(
        naive(columns(alter=age, troponin=gaps("k.A.", censored), ill=ill), ";").encode("cp1252"),
        {"alter": "numeric", "troponin": 'numeric gaps = ["k.A."], censored = true'},
        {"alter": AGE, "troponin": gapped(CRP, LIMITS)},
        options="--separator ';' --decimal ,",
    ),
    "laboratory_units": Export(
        quoted(
            columns(
                alter=age,
                größe=gaps("n.b.", lambda k: "<0,5 mg/l" if k % 4 == 1 else f"{grouped(CRP[k], '.', ',')} mg/l"),
                bemerkung=note,
                ill=ill,
            ),
            ";",
            "\r\n",
        ).encode("cp1252"),
        {"alter": "numeric", "größe": 'numeric gaps = ["n.b."], suffix = "mg/l", censored = true'},
        {"alter": AGE, "größe": gapped(CRP, {k: 0.5 for k in range(PATIENTS) if k % 4 == 1})},
        left_out={"bemerkung": "free text"},
        options="--encoding cp1252 --separator ';' --decimal , --thousands .",
    ),
    "laboratory_mostly_below": Export(
        naive(
            columns(
                hct=lambda k: f"{AGE[k]},5%",
                troponin=lambda k: "#DIV/0!" if GAP[k] else "<0,01" if k % 4 else comma(k),
                ill=ill,
            ),
            ";",
        ).encode(),
        {"hct": 'numeric suffix = "%"', "troponin": 'numeric gaps = ["#DIV/0!"], censored = true'},
        {"hct": [each + 0.5 for each in AGE], "troponin": gapped(CRP, {k: 0.01 for k in range(PATIENTS) if k % 4})},
        options="--separator ';' --decimal ,",
    ),
    "dashes_first": Export(
        naive(columns(age=age, crp=lambda k: "-" if k < 36 else crp(k), ill=ill)).encode(),
        {"age": "numeric", "crp": 'numeric gaps = ["-"]'},
        {"crp": [math.nan if k < 36 else CRP[k] for k in range(PATIENTS)]},
    ),
    "omop": Export(
        naive(
            columns(
                person_id=lambda k: str(1000 + k),
                year_of_birth=lambda k: str(2020 - AGE[k]),
                value_as_number=gaps("", crp),
                measurement_date=seen("%Y-%m-%d"),
                ill=lambda k: str(int(ILL[k])),
            ),
            "\t",
        ).encode(),
        {"year_of_birth": "numeric", "value_as_number": "numeric", "measurement_date": "dates"},
        {"value_as_number": gapped(CRP), "measurement_date": DAYS},
        left_out={"person_id": "different values in"},
        options="--separator tab",
    ),
    "mysql": Export(
        naive(columns(age=age, crp=gaps("NULL", crp), ward=gaps("\\N", pair("A", "B")), ill=ill), "\t").encode(),
        {**NUMBERS, "ward": "categories"},
        {"crp": gapped(CRP)},
        options="--separator tab",
    ),
    "postgres": Export(
        quoted(columns(age=age, smoker=pair("t", "f"), seen=lambda k: f"{SEEN[k]} 00:00:00", ill=ill)).encode(),
        {"age": "numeric", "smoker": "categories", "seen": "dates"},
        {"seen": DAYS},
    ),
    "sql_server": Export(
        (naive(columns(age=age, crp=gaps("NULL", crp), ill=ill), end="\r\n") + "\r\n(60 rows affected)\r\n").encode(
            "utf-8-sig"
        ),
        NUMBERS,
        {"crp": gapped(CRP)},
        lost=1,
    ),
    "oracle": Export(
        naive(columns(AGE=age, SEEN=lambda k: f"{SEEN[k]:%d-%b-%y}".upper(), ill=ill)).encode(),
        {"AGE": "numeric", "SEEN": 'dates written = "DD-MON-YY"'},
        {"SEEN": DAYS},
    ),
    "icd_11": Export(
        naive(columns(age=age, code=lambda k: ICD11[k * k % 11 % 5], ill=ill)).encode(),
        {"age": "numeric", "code": "categories as_text = true"},
    ),
    "icd_9": Export(
        naive(columns(age=age, code=lambda k: ICD9[k * k % 13 % 5], ill=ill)).encode(),
        {"age": "numeric", "code": "categories as_text = true"},
    ),
    "google_sheets": Export(
        quoted([["age\n(years)", "crp, mg/l", "ill"], *plain[1:]]).encode(),
        {"age (years)": "numeric", "crp, mg/l": "numeric"},
        {"age (years)": AGE, "crp, mg/l": CRP},
    ),
    "trailing_commas": Export(naive(plain, after=",").encode(), NUMBERS, BOTH, left_out={"column 4": "no name"}),
    "commas_behind_rows": Export((naive(plain[:1]) + naive(plain[1:], after=",")).encode(), NUMBERS, BOTH),
    "castor": Export(
        quoted(
            columns(age=age, seen=seen("%d-%m-%Y"), weight=lambda k: f"{AGE[k]} kg", ill=ill),
            ";",
            quoting=csv.QUOTE_ALL,
        ).encode(),
        {"age": "numeric", "seen": 'dates written = "DD-MM-YYYY"', "weight": 'numeric suffix = "kg"'},
        {"seen": DAYS, "weight": AGE},
        options="--separator ';'",
    ),
    "r_write_table_of_notes": Export(
        naive(columns(age=age, note=lambda k: '"said \\"no\\"\nleft"' if k == 9 else '"fine"', ill=ill)).encode(),
        refused="line 11 has a backslash before a quote",
    ),
    "mysql_notes": Export(
        naive(columns(age=age, note=lambda k: "a\\\nb" if k == 9 else "fine", ill=ill), "\t").encode(),
        refused="line 11 ends in a backslash, as MySQL writes a line break",
    ),
    "pandas_carriage_returns": Export(
        naive(columns(age=age, crp=crp, note=lambda k: f"a\rb{k}", ill=ill)).encode(),
        NUMBERS,
        BOTH,
        left_out={"note": "free text"},
    ),
    "python_on_windows": Export(quoted(plain, end="\r\r\n").encode(), NUMBERS, BOTH),
    "one_file_behind_the_other": Export(
        b"\xef\xbb\xbf" + (naive(plain[:31]) + "\ufeff" + naive(plain[:1] + plain[31:])).encode(), NUMBERS, BOTH, lost=1
    ),
    "dos": Export(naive(plain, end="\r\n").encode() + b"\x1a", NUMBERS, BOTH, lost=1),
    "a_report": Export(
        ("Patients of 2019\r\n\r\n" + naive(plain, end="\r\n")).encode(),
        refused="its line 3 names it: delete the lines",
    ),
    "two_marks": Export(
        naive(plain).encode("utf-8-sig").replace(b"\xef\xbb\xbf", b"\xef\xbb\xbf" * 2),
        refused="in line 1, the row of names, column 1 has a character that cannot be printed",
    ),
    "charges": Export(
        quoted(columns(age=age, cost=lambda k: f"${grouped(CRP[k], ',', '.')}", ill=ill)).encode(),
        {"age": "numeric"},
        left_out={"cost": "look like numbers with a sign of money"},
    ),
    "blood_pressures": Export(
        naive(columns(age=age, pressure=lambda k: f"{100 + k}/{50 + k}", ill=ill)).encode(),
        {"age": "numeric"},
        left_out={"pressure": "a slash between two of them"},
    ),
    "sap": Export(
        naive(columns(age=age, balance=lambda k: f"{crp(k)}-" if k % 3 else crp(k), ill=ill)).encode(),
        {"age": "numeric"},
        left_out={"balance": "a minus sign at the end"},
    ),
    "html": Export(
        naive(columns(age=age, crp=lambda k: f"&lt;{crp(k)}" if k % 3 else crp(k), ill=ill)).encode(),
        {"age": "numeric"},
        left_out={"crp": "a sign of HTML"},
    ),
    "excel_texts": Export(
        naive(columns(age=age, crp=lambda k: f'="{crp(k)}"', ill=ill)).encode(),
        {"age": "numeric"},
        left_out={"crp": 'Excel\'s ="..."'},
    ),
    "redcap_missing_codes": Export(
        quoted(columns(age=gaps("NASK", age, "ASKU"), crp=gaps("UNK", crp), ill=ill)).encode(),
        {"age": 'numeric gaps = ["NASK", "ASKU"]', "crp": 'numeric gaps = ["UNK"]'},
        {"age": gapped(AGE), "crp": gapped(CRP)},
    ),
    "times_of_berlin": Export(
        naive(columns(age=age, seen=lambda k: f"{SEEN[k] - timedelta(days=1)}T23:00:00Z", ill=ill)).encode(),
        {"age": "numeric", "seen": "dates"},
        {"seen": [each - 1 / 24 for each in DAYS]},
    ),
    "stray_quotes": Export(
        naive(columns(age=age, height=lambda k: f"{5 + k % 2}' {k % 12}\"", ill=ill)).encode(),
        {"age": "numeric", "height": "categories"},
        {"age": AGE},
    ),
}


if __name__ == "__main__":
    for name, export in EXPORTS.items():
        Path(sys.argv[1]).joinpath(f"{name}.csv").write_bytes(export.data)
