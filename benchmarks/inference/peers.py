"""Width, coverage and disclosure of tables from masked, noised sums, beside other ways on the same records.

    python -m benchmarks.inference.peers --save

statsmodels and OpenDP are run as they are. AdaSSP, DerSimonian-Laird, DLMM and ODAL are their published formulas in a
few lines here. Left out, because they were not run: R's pda, dp-wizard (whose error bars are OpenDP's), and lifelines,
which does not install beside the pandas that this project pins.
"""

from __future__ import annotations

import argparse
from functools import partial

from benchmarks.inference import peers_of_counts as counts
from benchmarks.inference import peers_of_regression as regression
from benchmarks.inference import peers_of_sites as sites
from benchmarks.inference.coverings import compared
from benchmarks.measuring import Tables, command
from threat_models.audits.inference import World

EPSILON = 1.0


def tables(options: argparse.Namespace) -> Tables:
    """Regression, one feature, shares, sites, logistic regression over sites, survival."""
    quick = options.quick
    runs = 2 if quick else options.runs
    many, each = (1_000, 60) if quick else (10_000, 500)

    wide, line = regression.schema_of(5), regression.schema_of(1)
    draw = partial(World.draw, wide, many)
    yield (
        "regression: five slopes and the intercept",
        compared("regression", draw, regression.regression_peers(wide, many, EPSILON), runs),
    )
    draw = partial(World.draw, line, many)
    yield "one feature: the slope", compared("line", draw, regression.line_peers(line, many, EPSILON), runs)

    few = many // 10
    yield "four shares", compared("shares", partial(counts.shares, few), counts.share_peers(few, EPSILON), runs)
    yield (
        "sites: two slopes",
        compared("sites", partial(sites.Sites.draw, 20, each), sites.site_peers(20, each, (3.0, 8.0)), runs),
    )
    yield (
        "logistic regression over sites: two slopes and the intercept",
        compared("odal", partial(sites.Sites.draw_binary, 10, each), sites.logistic_peers(10, each, (1.0, 3.0)), runs),
    )
    yield (
        "survival: 23 points of a curve",
        compared("survival", partial(counts.followed, many), counts.curve_peers(many, (0.3, 1.0)), runs),
    )


def _options(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--runs", type=int, default=100, help="releases per row")


if __name__ == "__main__":
    command("inference.peers", __doc__, tables, _options)
