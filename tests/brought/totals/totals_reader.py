"""The number of records in the released classes, with its interval under the noise, and an option of its own."""

from dataclasses import dataclass
from math import inf, sqrt
from typing import Annotated

from privstats.errors import ReleaseError
from privstats.extend.doors import Option
from privstats.workflows.tables import Options, TableReader


@dataclass(frozen=True)
class Digits(Options):
    digits: Annotated[int, Option("digits after the point.")] = 0


def check(plan):
    if plan.person_clip is not None:
        raise ReleaseError("totals counts records, and this plan averages a person's rows; name another reader")


def total(releases, options):
    from privstats.dp import noise_copies
    from privstats.extend.readers import Source, quantile
    from privstats.workflows.tables import TableResult

    release, plan = releases[0], releases[0].plan
    n = float(release.moments.N.sum())  # a suppressed class has 0 here, or its records are in the class it merged into
    copies = noise_copies(plan.schema.classes, release.suppressed, plan.merge).sum()
    reach = quantile(options.alpha, inf) * release.sigma["N"] * sqrt(copies)
    low, high, reported = n - reach, n + reach, n > reach
    shown = tuple(f"{each:.{options.digits}f}" if reported else "-" for each in (n, low, high))
    summary = Source(release, options.alpha, "honest clients").summary(
        "Records", ("", "records", "low", "high"), [("all", *shown)], methods="The number of records is the noisy sum."
    )
    row = {"term": "all", "n": n, "conf_low": low, "conf_high": high, "reported": reported}
    return TableResult(summary, [row], reported=reported)


READER = TableReader("totals", {"classes": "NA"}, total, Digits, check)
