"""A column of several readings: each value has its own cell, or is counted and named where it has none."""

from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import privstats as ps
from privstats.cli.parts.declaring import of_public_file
from privstats.intake.columns import read
from privstats.moments import RecordFile
from privstats.workflows.forms import declared_remedy
from privstats.workflows.look import looked
from privstats.workflows.rehearsal.assumed import kinds_of

LISTED = 12
"""Values that a rehearsal lists at most."""
GAPS = frozenset(("", "n/a", "-", "unknown", None))
SOURCES: dict[str, tuple[str, ...]] = {
    "small integers": ("0", "1", "2", "3", "4"),
    "integers": ("10", "20", "35", "117", "250000"),
    "decimals": ("0.5", "1.25", "-3.5", "1e-3"),
    "words": ("A", "B", "AB", "stage IV"),
    "numbers with letters": ("1a", "1b", "2c", "T1"),
    "truths": ("yes", "no", "Y", "N"),
    "booleans": ("true", "FALSE"),
    "ISO dates": ("2020-01-01", "2020-06-30", "2021-02-28"),
    "dates": ("28.03.2019", "01.04.2019"),
    "serials": ("43831", "44012"),
    "codes": ("01", "02", "042"),
    "beyond floats": ("9007199254740993", "1e300"),
    "signs": ("<5", "39%", ">=500"),
    "gaps": ("", "n/a", "-", "unknown"),
    "odd": ("a\u2028b", "x" * 250, "\ufffd"),
}


def mixed(rng: np.random.Generator) -> list[str]:
    """Return a column of two or three sources, in random shares, each value at least twice."""
    names = rng.choice([*SOURCES], rng.integers(2, 4), replace=False)
    every = [value for name in names for value in SOURCES[name]]
    chosen = rng.choice(every, rng.integers(2, len(every) + 1), replace=False)
    shares = rng.dirichlet(np.full(len(chosen), rng.choice([0.3, 3.0])))
    values = [*chosen, *chosen, *rng.choice(chosen, rng.integers(30, 200), p=shares)]
    return [*map(str, rng.permutation(values))]


def check_column(values: Sequence[Any]) -> None:
    """Compare what a rehearsal makes of a column with a count of its values."""
    kind = kinds_of({"x": read(values)}, {"x": values})["x"]
    if isinstance(kind, str):
        counts = read(values).counted(~read(values).missing)
        known = "dates in several forms" in kind or "digits that are not zero" in kind
        assert known or kind in ("empty", "one value alone") or len(counts) > LISTED, (kind, counts)
        return
    readings = kind.readings(values)
    codes, unread = kind.codes_and_unread(readings)
    seen = looked(kind, readings)
    counts = Counter(
        {
            next(iter(kind.words), "") if value == "nan" else value: count
            for value, count in readings.counted(~kind.decide(readings).gaps).items()
        }
    )
    assert seen.missing + counts.total() == len(values)
    assert seen.missing <= sum(value in GAPS for value in values)
    if not isinstance(kind, ps.Categories):
        assert unread + np.isfinite(codes).sum() == counts.total()
        assert not unread or any(f"{unread:,} " in each for each in seen.oddities), (kind, counts)
        assert isinstance(kind, ps.Truth) or len(counts) > LISTED or unread <= len(values) / 20, (kind, counts)
        return
    listed = {str(value): int((codes == place).sum()) for place, value in enumerate(kind.values)}
    if not listed:  # any text: no two values may be listed
        assert len([value for value in counts if value.isprintable() and len(value) < 200]) < 2 + 2
        return
    assert listed == {value: counts[value] for value in listed}, (kind, counts)
    others = counts.total() - sum(listed.values())
    assert others == seen.other + seen.unreadable
    odd = {value for value in counts if value in SOURCES["odd"] or value.startswith(("9007", "1e+300"))}
    rest = counts - Counter(listed)
    assert len(listed) == LISTED or rest.keys() <= odd, (kind, counts)
    assert max([count for value, count in rest.items() if value not in odd], default=0) <= min(listed.values())


@pytest.mark.parametrize("seed", range(300))
def test_every_value_of_a_mixed_column_is_listed_or_counted(seed):
    check_column(mixed(np.random.default_rng(seed)))


@pytest.mark.nightly
@pytest.mark.parametrize("seed", range(20))
def test_every_value_of_many_mixed_columns_is_listed_or_counted(seed):
    for row in range(500):
        check_column(mixed(np.random.default_rng([seed, row])))


DAYS = [f"{1 + place % 28:02d}.{1 + place % 12:02d}.2019" for place in range(60)]
ISO = [f"2019-{1 + place % 12:02d}-{1 + place % 28:02d}" for place in range(60)]
SERIALS = [str(43466 + 6 * place) for place in range(60)]


@pytest.mark.parametrize(
    ("values", "kind"),
    [
        (["1", "2", "3", "4", "1a", "1b"] * 20, ps.Categories("x", ("1", "2", "3", "4", "1a", "1b"))),
        (["0", "A", "B", "AB"] * 20, ps.Categories("x", ("0", "A", "AB", "B"))),
        ([*["1", "2", "3"] * 40, "1a", "1a"], ps.Categories("x", ("1", "2", "3", "1a"))),
        ([1, 2, "q"] * 20, ps.Categories("x", ("1", "2", "q"))),
        ([1, "none", None] * 20, ps.Categories("x", ("1", "none"))),
        (["1", "0", "yes", "No"] * 20, ps.Truth("x")),
        ([*["1", "0"] * 40, "yes"], ps.Truth("x")),
        ([*["1", "0"] * 40, "unclear"], ps.Categories("x", ("0", "1", "unclear"))),
        (["10", "9", "q", "100"] * 20, ps.Categories("x", ("9", "10", "100", "q"))),
        (["01", "1", "A"] * 20, ps.Categories("x", ("01", "1", "A"), as_text=True)),
        ([*DAYS, *["ongoing"] * 30], ps.Dates("x", written="DD.MM.YYYY")),
        ([*ISO, *["ongoing"] * 30], ps.Dates("x")),
        (["2020-01-01", "2020-06-01", "baseline"] * 20, ps.Categories("x", ("2020-01-01", "2020-06-01", "baseline"))),
        ([*ISO, *SERIALS], ps.Dates("x", written="days since 1899-12-30")),
        ([*DAYS, *SERIALS, *SERIALS], "180 of 180 look like dates in several forms: write one form, or ISO dates"),
    ],
)
def test_a_column_is_read_by_all_readings_of_its_values(values, kind):
    assert kinds_of({"x": read(values)}, {"x": values})["x"] == kind
    check_column(values)


def test_excels_days_in_a_column_of_dates_have_a_remedy():
    assert "written = 'days since 1899-12-30'".replace("'", '"') in declared_remedy(ps.Dates("x"), Counter(SERIALS))


def stages(folder: Path, words: dict[str, str]) -> list[Path]:
    """Write two hospitals' files, whose stages decide the outcome."""
    rng, risk = np.random.default_rng(3), dict(zip(words, (0.03, 0.12, 0.30, 0.60, 0.05, 0.08), strict=True))
    files = [folder / "a.csv", folder / "b.csv"]
    for file in files:
        stage = rng.choice([*words], 600, p=[0.2, 0.2, 0.15, 0.05, 0.2, 0.2])
        ill = rng.random(600) < [risk[each] for each in stage]
        rows = [
            f"{rng.normal(60, 12):.1f},{words[each]},{('no', 'yes')[int(label)]}"
            for each, label in zip(stage, ill, strict=True)
        ]
        file.write_text("\n".join(["age,stage,ill", *rows]) + "\n")
    return files


def test_numbers_among_words_predict_as_words_do(tmp_path):
    """A stage 1, 2, 3, 4, 1a, 1b was listed as 1a and 1b, and the page asked whether the rest was misspelt."""
    own = dict(zip(("1", "2", "3", "4", "1a", "1b"), ("p1", "p2", "p3", "p4", "q1a", "q1b"), strict=True))
    found = {}
    for name, words in (("numbers", dict(zip(own, own, strict=True))), ("words", own)):
        (tmp_path / name).mkdir()
        files = stages(tmp_path / name, words)
        found[name] = ps.rehearse(files, target="ill", epsilon=9)
        assert found[name].opened.public.columns == (ps.Numeric("age"), ps.Categories("stage", (*words.values(),)))
        assert [remark for party in found[name].opened.parties for remark in party.odd] == []
        declared = of_public_file(RecordFile(files[0], "ill"), ())
        assert declared.columns == (ps.Numeric("age"), ps.Categories("stage", (*words.values(),)))
    assert found["numbers"].exact == found["words"].exact
    assert found["numbers"].exact.value > 0.65


def test_values_beyond_the_list_are_counted_with_their_file(tmp_path):
    wards = [f"ward {place}" for place in range(20) for _ in range(1 + place % 2)]
    for file in ("a.csv", "b.csv"):
        rows = [f"{ward},{label}" for label in ("no", "yes") for ward in wards for _ in range(7)]
        (tmp_path / file).write_text("\n".join(["ward,ill", *rows]))
    what = ps.workflows.rehearsal.opened(
        [RecordFile(tmp_path / file, "ill") for file in ("a.csv", "b.csv")],
        ps.workflows.rehearsal.RehearsalOptions("ill", 3.0, test=0.4),
    )
    odd = [remark for party in what.parties for remark in party.odd]
    assert [remark.partition(", such as")[0] for remark in odd] == [
        f"{file}.csv: ward: 112 of 420 values count as other" for file in "ab"
    ]
