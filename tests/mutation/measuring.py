"""What sees a bug: the audits, run in this process, and the unit tests, run in a process of their own.

Measures and judges; prints nothing. In ``python -m tests.mutation`` and in the tests of this folder.
"""

import os
import re
import subprocess
import sys
from collections.abc import Callable, Mapping
from pathlib import Path

from privstats.errors import PrivstatsError
from privstats.randomness import Generator, seeded
from tests.mutation.catalogue import MUTANTS
from tests.mutation.plans import plan_of
from tests.mutation.planting import planted
from tests.threat_models.quick_check import SHARP, violations
from threat_models.audits.budget import audit_budget
from threat_models.audits.canary import audit_canary
from threat_models.audits.noise import audit_noise
from threat_models.audits.searches import search_of
from threat_models.audits.target import Target, target_of
from threat_models.audits.verdict import Report

ROOT = Path(__file__).parents[2]
_SEED = 7
_CANARY_TRIALS = 5000
_ATTACK_TRIALS = 1000

AUDITS: Mapping[str, Callable[[Target, Generator], Report]] = {
    "budget": lambda target, rng: audit_budget(target),
    "sensitivity": lambda target, rng: search_of(target.schema)(target, rng, starts=4),
    "noise": lambda target, rng: audit_noise(target, rng),
    "canary": lambda target, rng: audit_canary(target, rng, trials=_CANARY_TRIALS),
}


def seen(mutant: str) -> dict[str, str]:
    """A row of the table: the bug, the unit tests that fail, the audits that object and the attacks that exceed.

    A row that cannot be measured says why and names no test and no audit, so that no other row is lost with it.
    """
    try:
        return _seen(mutant)
    except Exception as error:  # whatever a planted bug breaks
        why = f"not measured: {type(error).__name__}: {error}"
        return {"bug": mutant, "unit tests": "", "audits": "", "attacks": "", "evidence": why}


def _seen(mutant: str) -> dict[str, str]:
    failed = failures_under(mutant)
    found = {audit: report for audit, report in audits_under(mutant).items() if report.violated}
    return {
        "bug": mutant,
        "unit tests": ", ".join(failed),
        "audits": ", ".join(found),
        "attacks": ", ".join(attacks_under(mutant)),
        "evidence": "; ".join(f"{audit}: {evidence(report)}" for audit, report in found.items()),
    }


def audits_under(mutant: str, names: tuple[str, ...] = tuple(AUDITS)) -> dict[str, Report]:
    """These audits of the bug's plan, built and run while the bug is planted."""
    if not MUTANTS[mutant].plan:
        return {}
    with planted(MUTANTS[mutant].edits):
        return objections(MUTANTS[mutant].plan, names)


def attacks_under(mutant: str) -> tuple[str, ...]:
    """The attacks that report *violates ceiling* on the bug's plan, built and attacked while the bug is planted."""
    if not MUTANTS[mutant].plan:
        return ()
    with planted(MUTANTS[mutant].edits):
        chosen = tuple(name for name in SHARP if name != "protocol-lies")  # slow, and no bug of the table concerns it
        try:
            return violations(plan_of(MUTANTS[mutant].plan), seed=_SEED, trials=_ATTACK_TRIALS, names=chosen)
        except PrivstatsError:  # the bug refuses the attackers' world: nothing comes out of it
            return ()


def objections(plan: str, names: tuple[str, ...] = tuple(AUDITS)) -> dict[str, Report]:
    """These audits of a plan."""
    target = target_of(plan_of(plan))
    return {name: AUDITS[name](target, seeded(_SEED)) for name in names}


def evidence(report: Report) -> str:
    """The strongest number in a report: a ratio to the claim, or the smallest p; or the sentence that objects."""
    rows = [dict(zip(report.columns, row, strict=True)) for row in report.rows]
    ratios = [row["ratio"] for row in rows if "ratio" in row]
    ps = [row[column] for row in rows for column in row if column.startswith("p ")]
    if report.audit == "noise" and min(ps) > 1e-5:
        return report.notes[-1].split(":")[0]
    if ps:
        return f"p {min(ps):.1e}"
    return f"ratio {max(ratios):.3g}" if ratios else "mu above the promise"


def failures_under(mutant: str) -> tuple[str, ...]:
    """Names of the bug's unit tests that fail while it is planted in a process of its own.

    Raises:
        PrivstatsError: pytest could not run them, which is no failure of a test.
    """
    command = [sys.executable, "-m", "pytest", "-q", "-n", "0", "-m", "not nightly"]  # some of them are marked ci
    command += ["-p", "tests.mutation.plugin", "--mutant", mutant]
    done = subprocess.run(
        [*command, "-p", "no:cacheprovider", "--no-header", "--tb=no", "-rf", *MUTANTS[mutant].tests],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=False,
        env={**os.environ, "PYTHONPATH": str(ROOT), "HYPOTHESIS_PROFILE": "ci"},  # the same examples in every run
    )
    if done.returncode not in (0, 1):
        raise PrivstatsError(f"pytest ended with {done.returncode} under {mutant!r}: {done.stdout}{done.stderr}")
    return tuple(dict.fromkeys(re.findall(r"^FAILED \S+::(\w+)", done.stdout, re.MULTILINE)))


def turn() -> int:
    """Which part of the table is on: from PRIVSTATS_TURN, or from the commit that is checked out, or 0 without one."""
    given = os.environ.get("PRIVSTATS_TURN")
    if given is not None:
        return int(given)
    command = ["git", "rev-parse", "HEAD"]
    try:
        head = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=True).stdout
    except (OSError, subprocess.CalledProcessError):
        return 0
    return int(head[:12], 16)
