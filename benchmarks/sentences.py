"""Sentences of the documentation with numbers that follow from the library, made from it, so that they cannot drift.

A sentence stands in a page between ``<!-- sentence: NAME -->`` and ``<!-- end -->``; NAME is a function here. Checked
and written with the tables, by ``python -m benchmarks.tables``.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Iterable, Mapping, Sequence, Set

from benchmarks import core_tables, probability_sentences, raw_table_tables
from benchmarks.measuring import results
from benchmarks.peer_tables import choice_gains, party_leads
from benchmarks.refinement_tables import (
    DATA,
    EPSILONS,
    RIVALS,
    SETS,
    gained,
    oracle_rows,
    oracle_side,
    regressions_behind,
    standing,
    trained_of,
)
from benchmarks.table import titled
from privstats import dp
from tests.mutation.catalogue import MUTANTS

__all__ = ["SENTENCES", "in_page", "rewritten"]

_MARKED = re.compile(r"(<!-- sentence: ([a-z_]+) -->)(.*?)(<!-- end -->)", re.DOTALL)
_DELTA, _FALSE_ALARMS = 1e-5, 0.01


def _reached(epsilon: float) -> tuple[float, float]:
    """Hits at one false alarm in a hundred, and the AUC, of the best attacker at this epsilon and delta 1e-5."""
    hits, auc, _ = dp.operating_point(dp.gaussian_mu(epsilon, _DELTA), _FALSE_ALARMS)
    return hits, auc


def found_of_a_hundred() -> str:
    """docs/officer.md: what the best attacker finds."""
    one, three, ten = (round(100 * _reached(epsilon)[0]) for epsilon in (1, 3, 10))
    return f"At epsilon 1 it is {one} in 100, at epsilon 3 about {three}, at epsilon 10 about {ten}."


def ceilings_of_informed() -> str:
    """docs/attacks.md: the ceilings over the table of defences."""
    eight, one = (f"{_reached(epsilon)[1]:.2f}".lstrip("0") for epsilon in (8, 1))
    return f"Its ceilings are an AUC of {eight} at epsilon 8 and {one} at epsilon 1"


def a_search_adds_up() -> str:
    """docs/alone.md: the promise of a search by cross-validation, its last fit included."""
    folds, candidates = 5, 4
    mu = dp.gaussian_mu(1.0, _DELTA) * math.sqrt(folds * candidates + 1)
    together = dp.gaussian_epsilon(mu, _DELTA)
    return f"five folds of four candidates at epsilon 1 and delta 1e-5 come to epsilon {together:.1f}"


def bugs_measured() -> str:
    """benchmarks/mutation_numbers.md: how many bugs there are, and how many were measured for the table."""
    rows = next(rows for title, rows in results("mutation").items() if title != "machine")
    measured = len({row["bug"] for row in rows} & set(MUTANTS))
    rest = len(MUTANTS) - measured
    waiting = "" if not rest else f"; {rest} came after the table was last measured"
    return f"The catalogue has {len(MUTANTS)} bugs{waiting}."


def bugs_seen() -> str:
    """README.md: how many planted bugs the tests of its command see."""
    return f"Each of the {len(MUTANTS)} bugs that `tests/mutation` plants makes one of them fail."


def laplace_of_counts() -> str:
    """docs/proofs/pure_epsilon.md: Laplace noise beside Gaussian noise on counts, by the number of tables."""
    ((_, found),) = titled("papers.gh_appendix_b", "Gaussian or Laplace, noise")
    rows = {row["tables"]: row for row in found}
    one, ratio = rows[1], "Laplace over Gaussian"
    cheaper, dearer = max(n for n in rows if rows[n][ratio] < 1), min(n for n in rows if rows[n][ratio] > 1)
    return (
        f"At epsilon 1 every count of one table has Laplace noise with a deviation of {one['Laplace, delta 0']:.2f} "
        f"where Gaussian noise at delta 1e-6 has {one['Gaussian, delta 1e-06']:.2f}; up to {cheaper} tables of one "
        f"record Laplace noise is the smaller, from {dearer} on the larger"
    )


def one_liar() -> str:
    """docs/proofs/reports.md: what one liar of twenty leaves of digits' LDA under each level."""
    rows = results("attacks.poisoned_sums")["worst accuracy that one liar of twenty leaves, %"]
    row = next(row for row in rows if (row["data"], row["head"]) == ("digits", "LDA"))
    keys = ("honest", "none", "norm", "moments", "real records")
    honest, none, norm, moments, real = (f"{row[key]:.1f} %" for key in keys)
    return (
        f"One liar among twenty clients, who knows all honest sums and the test records, reduces digits' LDA from "
        f"{honest} to {none} where nothing is proved, to {norm} under `norm`, and to {moments} under `moments`; n "
        f"invented records, which no party can refuse, reduce it to {real}"
    )


def oracle_standing() -> str:
    """README.md: refinement beside the rival whose setting the test set chose, in every stored search."""
    said = []
    for data, found in oracle_rows().items():
        placed: dict[int, list[float]] = {1: [], 0: [], -1: []}
        for epsilon, rows in found.items():
            placed[oracle_side(rows)].append(epsilon)
        words = {1: "ahead", 0: "level", -1: "behind"}
        stated = " and ".join(f"{words[side]} at {_listed(at)}" for side, at in placed.items() if at)
        most = [max(trained_of(rows[rival]) for rival in RIVALS if rival in rows) for rows in found.values()]
        settings, trained = map(set, zip(*most, strict=True))
        few = "" if settings == trained else f", {_between(trained)} of them trained"
        said.append(f"{stated} on {SETS[data]} ({_between(settings)} settings{few})")
    *first, last = said
    return f"they were, by epsilon, {', '.join(first)}{', and ' if first else ''}{last}."


def _between(counts: Set[int]) -> str:
    return f"{min(counts):,}" if len(counts) == 1 else f"{min(counts):,} to {max(counts):,}"


def _listed(epsilons: Sequence[float]) -> str:
    *several, last = (f"{epsilon:g}".removeprefix("0") for epsilon in epsilons)
    return f"{', '.join(several)} and {last}" if several else last


def cells_ahead() -> str:
    """benchmarks/refinement/numbers.md: in how many cells refinement is ahead, and a mean first gains."""
    return (
        f"Against the better peer refinement is {_counted(standing, 'ahead', 'behind')}. A mean first is, against one "
        f"release, {_counted(gained, 'ahead', 'behind')}."
    )


def parties_ahead() -> str:
    """benchmarks/peers/numbers.md: in how many cells one upload of each party, or two, is ahead of tuned DP-FedAvg."""
    site = "privstats, one direction, site's rows"
    given, twice, same, alone, twice_alone = (
        list(party_leads(system, rivals))
        for system, rivals in (
            (site, "DP-FedAvg(, one round)?, centred"),
            ("privstats, two rounds, site's rows", "DP-FedAvg(, one round)?, centred"),
            (site, "DP-FedAvg, one round, site's rows"),
            ("privstats, one direction", "DP-FedAvg(, one round)?"),
            ("privstats, two rounds", "DP-FedAvg(, one round)?"),
        )
    )
    data, most, _ = max(given, key=lambda each: each[1])
    return (
        f"Against DP-FedAvg as it is, centred, one untuned upload is {_standing(given, 2)} of {len(given)} cells, by "
        f"up to {most:.0f} points on {data}; two untuned rounds are {_standing(twice, 2)}. Against one round that is "
        f"given our head's use of the site's rows as well, one upload is {_standing(same, 2)}. Without a site's rows "
        f"one upload is {_standing(alone, 2)}, two rounds are {_standing(twice_alone, 2)}. Counted by one standard "
        f"error of the difference instead of two: centred, one upload is {_standing(given, 1)}, two rounds are "
        f"{_standing(twice, 1)}; against the same use of the site's rows, {_standing(same, 1)}; without a site's rows, "
        f"{_standing(alone, 1)}, and two rounds {_standing(twice_alone, 1)}."
    )


def party_rounds_gain() -> str:
    """docs/heads.md: what a second round of parties is worth to the library's own head."""
    paired = [gain for _, gain, _ in choice_gains("two rounds, length 16")]
    alone = list(party_leads("privstats, two rounds", "privstats, one direction"))
    data, most, _ = max(alone, key=lambda each: each[1])
    return (
        f"With the site's rows it gains {min(paired):.1f} to {max(paired):.1f} points; without them it is "
        f"{_standing(alone, 2)} of {len(alone)} cells by two standard errors, by up to {most:.0f} points on {data}"
    )


def second_rounds() -> str:
    """benchmarks/peers/numbers.md: what a second round of parties gains over one direction."""
    said = []
    for length in (16, 32):
        found = list(choice_gains(f"two rounds, length {length}"))
        points = [gain for _, gain, _ in found]
        said.append(
            f"length {length} is {_standing(found, 2)} of {len(found)} cells and gains {min(points):.1f} to "
            f"{max(points):.1f} points"
        )
    return f"By two standard errors of the gain {said[0]}; {said[1]}."


def raw_tables_standing() -> str:
    """benchmarks/raw_tables/numbers.md: on how many untouched tables ours is ahead of DP-EBM at epsilon 1."""
    return raw_table_tables.said()


def raw_tables_out_of_reach() -> str:
    """benchmarks/raw_tables/numbers.md: where gaps cost more than privacy."""
    return raw_table_tables.out_of_reach()


def regressions_standing() -> str:
    """benchmarks/refinement/numbers.md: in how many cells rounds of a regression are behind the best other model."""
    ours, more, parties = (regressions_behind(f"refined, T = {T}") for T in ("24", "48", "24, distributed"))
    return (
        f"With 24 rounds {len(ours)} of 25 cells are ({_by_data(ours)}), with 48 rounds {len(more)} "
        f"({_by_data(more)}), and with 24 among parties {len(parties)} ({_by_data(parties)})."
    )


def many_regressions_standing() -> str:
    """benchmarks/refinement/numbers.md: the same beside DP-GD alone, by many draws."""
    ((_, rows),) = titled("refinement.many_draws", "test MSE of a regression's rounds")
    lost = [row for row in rows if row["change, %"] > row["se"]]
    places = _by_data([(row["data"], f"{row['epsilon']:g}") for row in lost])
    changes = [row["change, %"] for row in rows]
    return (
        f"Rounds are behind by more than one standard error in {len(lost)} of {len(rows)} cells ({places}), by "
        f"{max(changes):.1f} percent at most, and ahead by up to {-min(changes):.0f} percent."
    )


def _by_data(cells: Sequence[tuple[str, str]]) -> str:
    found = {data: [float(e) for own, e in cells if own == data] for data, _ in cells}
    return "; ".join(f"{data} at {_listed(epsilons)}" for data, epsilons in found.items())


def levels_standing() -> str:
    """benchmarks/inference/numbers.md: how often intervals of rounds miss with a level that few records have."""
    courses = [rows for title, rows in titled("inference.levels") if title.startswith(("logit", "poisson", "hazards"))]
    own = [row for rows in courses for row in rows]
    shares = []
    for declared in (True, False):
        rows = [row for row in own if (row["level"] != "not declared") is declared]
        worlds, missed = sum(row["runs"] for row in rows), sum(row["runs"] * row["reported and missed"] for row in rows)
        shares.append(f"{round(missed):,} of {worlds:,} ({100 * missed / worlds:.1f} %)")
    return (
        f"Of logistic, Poisson and hazard regressions, {shares[0]} intervals miss where the level is declared, and "
        f"{shares[1]} where it is not."
    )


def nothing_to_learn() -> str:
    """docs/refinement.md: what noise costs rounds where targets do not depend on the columns."""
    ((_, rows),) = titled("refinement.unlearnable")
    parts = []
    for n, d, epsilon in ((2_000, 30, 0.3), (1_500, 30, 0.1), (500, 30, 0.3)):
        own = [row for row in rows if (row["records"], row["columns"], row["epsilon"]) == (n, d, epsilon)]
        ratios = [row["T = 24"] for row in own]
        at = f"with {n:,} records and {d} columns at epsilon {_listed([epsilon])} (n mu = {own[0]['n mu']:.0f})"
        parts.append(f"{min(ratios):.2f} to {max(ratios):.2f} {at}")
    return f"After 24 rounds, test error over that of the records' mean is {', '.join(parts)}."


def _standing(leads: Sequence[tuple[str, float, float]], errors: float) -> str:
    sides = [(lead > errors) - (lead < -errors) for _, _, lead in leads]
    return f"behind in {sides.count(-1)}, level in {sides.count(0)} and ahead in {sides.count(1)}"


def _counted(side: Callable[[str, str], int], more: str, less: str) -> str:
    found = [side(data, epsilon) for data in DATA for epsilon in EPSILONS]
    return f"{more} in {found.count(1)} of {len(found)} cells, level in {found.count(0)}, {less} in {found.count(-1)}"


SENTENCES: Mapping[str, Callable[[], str]] = {
    make.__name__: make
    for make in (
        found_of_a_hundred,
        ceilings_of_informed,
        a_search_adds_up,
        bugs_measured,
        bugs_seen,
        laplace_of_counts,
        one_liar,
        oracle_standing,
        cells_ahead,
        parties_ahead,
        party_rounds_gain,
        second_rounds,
        levels_standing,
        regressions_standing,
        many_regressions_standing,
        nothing_to_learn,
        raw_tables_standing,
        raw_tables_out_of_reach,
        *core_tables.MAKERS,
        *probability_sentences.MAKERS,
    )
}


def in_page(page: str) -> Iterable[str]:
    """Names of the sentences that stand in a page."""
    return [found[2] for found in _MARKED.finditer(page)]


def rewritten(page: str) -> str:
    """The page with every marked sentence as it follows; where only its lines are broken otherwise, as it stands."""

    def fresh(found: re.Match[str]) -> str:
        said = SENTENCES[found[2]]()
        return found[0] if found[3].split() == said.split() else found[1] + said + found[4]

    return _MARKED.sub(fresh, page)
