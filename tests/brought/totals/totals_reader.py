"""The number of records under their classes, with an option of its own."""

from dataclasses import dataclass
from typing import Annotated

from privstats.extend.doors import Option
from privstats.workflows.tables import Options, TableReader


@dataclass(frozen=True)
class Digits(Options):
    digits: Annotated[int, Option("digits after the point.")] = 0


def total(releases, options):
    from privstats.inference import Summary
    from privstats.workflows.tables import TableResult

    n = float(releases[0].moments.N.sum())
    summary = Summary("All records", (), ("", "records"), (("all", f"{n:.{options.digits}f}"),), ())
    return TableResult(summary, [{"term": "all", "n": n}], reported=True)


READER = TableReader("totals", {"classes": "NA"}, total, Digits)
