"""A trial's report from two CSV files by the commands of docs/effects.md alone: CONSORT's items, one by one."""

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

pandas = pytest.importorskip("pandas")

pytestmark = pytest.mark.ci

LEFT_OUT = {"drug": (40, 20), "placebo": (25, 30)}
"""Records without an outcome, and with an unreadable column, by arm."""
PEOPLE = 4_000
SMOKING, ENDED = ("never", "former", "current"), ("seen", "relapse", "death")
TERMS = (
    "--clients 2 --vanish 0 --colluders 0 --max-records 10000 --model distributed --unit record "
    "--adjacency add-remove --delta 1e-6"
)


def patients(rng: np.random.Generator) -> Any:
    """A trial with age near normal, three kinds of smokers, records that cannot be read, and two causes of the end."""
    arm, smoking = np.arange(PEOPLE) % 2, rng.choice(3, PEOPLE, p=[0.55, 0.35, 0.1])
    age = np.clip(rng.normal(55, 12, PEOPLE), 20, 90).round()
    well = rng.random(PEOPLE) < 0.3 + 0.003 * (age - 55) - 0.08 * (smoking == 2) + 0.1 * arm
    relapse = rng.exponential(30 / np.exp(-0.5 * arm + 0.5 * (smoking == 2)))
    death, left = rng.exponential(60, PEOPLE), np.minimum(rng.exponential(60, PEOPLE), rng.uniform(12, 27, PEOPLE))
    months = np.minimum(np.minimum(relapse, death), left)
    ended = np.select([months == left, months == relapse], ENDED[:2], ENDED[2])
    table = pandas.DataFrame(
        {
            "age": age,
            "smoking": np.array(SMOKING, object)[smoking],
            "arm": np.array(["placebo", "drug"])[arm],
            "recovered": np.where(well, "yes", "no").astype(object),
            "months": months.round(2),
            "ended": ended,
        }
    )
    for text, (outcome, column) in LEFT_OUT.items():
        places = np.flatnonzero(table["arm"] == text)[: outcome + column]
        table.loc[places[:outcome], "recovered"] = None
        table.loc[places[outcome:], "smoking"] = "unknown"
    return table


@pytest.fixture(scope="module")
def files(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Any]:
    folder, table = tmp_path_factory.mktemp("trial"), patients(np.random.default_rng(11))
    for name, part in (("north", table[:2_100]), ("south", table[2_100:])):
        part.to_csv(folder / f"{name}.csv", index=False)
    return folder, table


def commands(run: Any, folder: Path, lines: str) -> list[Any]:
    """The lines of a page, each a command; the last word of an answer stays whole."""
    return [run(*line.split(), cwd=folder, code=0) for line in lines.strip().splitlines()]


def test_the_report_of_a_trial_item_by_item(privstats: Any, files: tuple[Path, Any]) -> None:
    folder, people = files
    design = (
        "--task effect --ranges age=20:90,smoking=never/former/current --treatment arm=placebo/drug "
        "--outcome recovered=no/yes --probability 0.5 --measure both --left-out counted --epsilon 1"
    )
    *_, arms, balance, methods = commands(
        privstats,
        folder,
        f"""
        plan init plan.toml --yes {design} {TERMS}
        course init trial.toml --plan plan.toml
        course rehearse trial.toml north.csv south.csv --out trial
        table trial/0.release trial/1.release --arms --format json
        table trial/0.release trial/1.release --balance --format json
        table trial/0.release trial/1.release --methods
        """,
    )
    rows = {(row["group"], row["metric"]): row for row in json.loads(arms.stdout)["rows"]}
    whole = people[people["smoking"].isin(SMOKING) & people["recovered"].notna()]
    for arm, (outcome, column) in LEFT_OUT.items():
        of_arm = whole[whole["arm"] == arm]
        risk, analysed = rows[arm, "risk"], len(of_arm)
        # 13a, 16: numbers analysed; 13b: exclusions by reason; 17a: events and risk with an interval
        assert risk["n"] == pytest.approx(analysed, abs=150)
        assert risk["n_event"] == pytest.approx((of_arm["recovered"] == "yes").sum(), abs=150)
        adjusted = rows[arm, "adjusted risk"]
        assert adjusted["conf_high"] - adjusted["conf_low"] < risk["conf_high"] - risk["conf_low"]
        assert risk["conf_low"] < (of_arm["recovered"] == "yes").mean() < risk["conf_high"]
        assert rows[arm, "left out: no outcome"]["n"] == pytest.approx(outcome, abs=150)
        assert rows[arm, "left out: a column unread"]["n"] == pytest.approx(column, abs=150)
    # 17b: the absolute and the relative effect, of one course
    assert rows["", "difference"]["conf_low"] < 0.1 < rows["", "difference"]["conf_high"]
    assert rows["", "ratio"]["conf_low"] < 4 / 3 < rows["", "ratio"]["conf_high"]
    # 15: the baseline by arm, every text of a column a row; age is reported at 4,000 records and epsilon 1
    baseline = {row["variable"]: row for row in json.loads(balance.stdout)["rows"]}
    assert set(baseline) == {"age", "smoking: former", "smoking: current"}
    assert baseline["age"]["reported"]
    assert baseline["smoking: former"]["reported"]
    assert baseline["age"]["mean_treated"] == pytest.approx(55, abs=2)
    # 12a: how it was estimated
    assert "augmented inverse-probability weighting" in " ".join(methods.stdout.split())


def test_its_outcome_over_time_by_cause(privstats: Any, files: tuple[Path, Any]) -> None:
    """17a over time: cause-specific ratios of both arms and of each text, and the incidence of either cause."""
    folder, _ = files
    design = (
        "--task hazard --ranges smoking=never/former/current,arm=placebo/drug --times continuous "
        "--bins months=0,6,12,18,24 --event ended=seen/relapse/death --expected-events 1500 --epsilon 4"
    )
    course, *_, ratios, incidence, refused = [
        *commands(
            privstats,
            folder,
            f"""
            plan init hazards.toml --yes {design} {TERMS}
            course init survival.toml --plan hazards.toml --by arm
            course rehearse survival.toml north.csv south.csv --out survival
            table {" ".join(f"survival/{k}.release" for k in range(5))} --figure ratios.svg --format json
            table survival/0.release --time months --event ended --by arm --times continuous --format json
            """,
        ),
        privstats("course", "init", "other.toml", "--plan", "hazards.toml", "--by", "smoking", cwd=folder, code=2),
    ]
    assert "wrote hazards.toml" in course.stdout
    assert (folder / "ratios.svg").is_file(), "a forest, because survival by arm has one cause"
    found = {row["term"]: row for row in json.loads(ratios.stdout)["rows"]}
    assert set(found) == {"arm", "smoking: former", "smoking: current"}
    for name, truth in (("arm", -0.5), ("smoking: former", 0.0), ("smoking: current", 0.5)):
        assert found[name]["conf_low"] < truth < found[name]["conf_high"]
    causes = json.loads(incidence.stdout)["rows"]
    assert {(row["group"], row["cause"]) for row in causes} == {
        (arm, cause) for arm in ("placebo", "drug") for cause in ENDED[1:]
    }
    assert max(row["time"] for row in causes) == 24
    assert "'smoking' has 3 texts" in refused.stderr
