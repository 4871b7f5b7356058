"""``privstats course sites``: the round by site after those of a logistic regression."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import privstats as ps
from privstats.cli.parts.plan_files import PlanFiles
from privstats.extend.commands import Force, argument, next_command, option, say


def sites(
    plan: Annotated[
        Path, argument("The round's plan: scores of the rounds' columns and of one more column per site.", "PLAN.TOML")
    ],
    releases: Annotated[list[Path], argument("The releases of the rounds, in order.", "RELEASES...")],
    out: Annotated[Path, option("The plan's file; its values go next to it.")] = Path("sites.toml"),
    force: Force = False,
) -> None:
    """Plan one more round after those of a logistic regression, with a column per site, for a random intercept.

    The columns that the rounds do not have are the sites. Run the plan as any other, and read it with `privstats table
    --reader site-levels`.
    """
    from privstats.contrib.site_levels.commands import planned
    from privstats.extend.plans import read_text
    from privstats.plan.document import from_toml

    files = PlanFiles(out)
    terms, _ = from_toml(read_text(plan))
    made = planned(terms, [ps.Release.load(each) for each in releases])
    say(f"{files.write(made, force)}; run: {next_command('plan', 'check', out)}")
