"""Made-up records of two hospitals, which ``privstats try --example`` and the first lines of the README read.

No person is behind a line. The outcome is rare and follows from age, kidneys, sodium, smoking and the ward; the two
hospitals have other patients, cells are empty, and one ward is spelled in two ways.

    python -m benchmarks.hospitals privstats/workflows/rehearsal
"""

from __future__ import annotations

import csv
import sys
from dataclasses import dataclass
from datetime import date, timedelta
from pathlib import Path
from typing import Any

import numpy as np

HEADER = ("patient", "admitted", "age", "sex", "smoker", "ward", "sodium", "creatinine", "crp", "notes", "ill")
WARDS = ("surgery", "cardiology", "medicine", "emergency", "Emergency ")
NOTES = ("stable", "see letter", "was seen by the night shift", "walks with a stick", "daughter called", "asks for tea")


@dataclass(frozen=True)
class Hospital:
    """One of two hospitals: their patients differ, so what decides at one is rare at the other."""

    seed: int
    records: int
    age: float
    smokers: float
    wards: tuple[float, ...]


HOSPITALS = {
    "north": Hospital(11, 2_400, 56.0, 0.05, (0.4, 0.35, 0.25, 0.0, 0.0)),
    "south": Hospital(12, 1_800, 64.0, 0.35, (0.2, 0.0, 0.45, 0.25, 0.1)),
}


def rows(hospital: Hospital) -> list[tuple[Any, ...]]:
    """The records of one hospital."""
    rng, count = np.random.default_rng(hospital.seed), hospital.records
    age = np.clip(18 + np.abs(rng.normal(hospital.age - 18, 14, count)), 18, 97).round()
    male, smoker = rng.random(count) < 0.52, rng.random(count) < hospital.smokers
    ward = rng.choice(len(WARDS), count, p=hospital.wards)
    sodium = rng.normal(139, 3.6, count).round()
    creatinine = np.exp(rng.normal(0.006 * (age - 60), 0.35, count)).round(2)
    crp = np.where(rng.random(count) < 0.3, 0.0, np.exp(rng.normal(2.2, 1.2, count))).round(1)
    score = -4.0 + 0.03 * (age - 60) + 1.0 * np.log(creatinine) + 0.2 * np.log1p(crp) + 0.06 * np.abs(sodium - 139)
    score += 1.3 * smoker + 2.0 * (ward >= WARDS.index("emergency")) + 1.6 * (ward == WARDS.index("cardiology"))
    ill = rng.random(count) < 1 / (1 + np.exp(-score))
    days = rng.integers(0, 730, count)
    gone = rng.random((count, 4)) < (0.03, 0.12, 0.08, 0.2)
    out = []
    for i in range(count):
        laboratory = [
            "" if gone[i, 1] else int(sodium[i]), "" if gone[i, 2] else creatinine[i], "NA" if gone[i, 3] else crp[i],
        ]  # fmt: skip
        out.append((
            f"{hospital.seed}-{rng.integers(10**7):07d}", date(2024, 1, 1) + timedelta(int(days[i])), int(age[i]),
            "" if gone[i, 0] else "m" if male[i] else "f", "yes" if smoker[i] else "no", WARDS[ward[i]], *laboratory,
            f"{rng.choice(NOTES)}, {rng.integers(100, 999)}", "yes" if ill[i] else "no",
        ))  # fmt: skip
    return out


def main(folder: str) -> None:
    """Write both files."""
    for name, hospital in HOSPITALS.items():
        with (Path(folder) / f"{name}.csv").open("w", newline="", encoding="utf-8") as file:
            writer = csv.writer(file, lineterminator="\n")
            writer.writerows([HEADER, *rows(hospital)])


if __name__ == "__main__":
    main(*sys.argv[1:])
