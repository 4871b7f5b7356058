"""Deliberate bugs of random intercepts by site: wrong laws of levels, sums of other sites, noise read as tau."""

from typing import Any

import numpy as np

from privstats.contrib.site_levels.fit import SiteSums
from tests.mutation.mutant import Mutant, bug
from tests.mutation.planting import member, name_in

_LOGIT = "privstats.contrib.site_levels.logit"
_TESTS = "tests/contrib/site_levels/test_logit.py::"


def _of_the_next_site(right: Any) -> Any:
    return lambda t, sy, *others: right(t, np.roll(sy, 1), *others)


def _without_promise(right: Any) -> Any:
    return lambda privacy, pooled: None


SITE_LEVELS_MUTANTS: dict[str, Mutant] = {
    "levels of equal weights": bug("the quadrature over levels weighs each of its points alike",
        name_in(_LOGIT, "_MASS", lambda right: np.full_like(right, 1 / len(right))),
        _TESTS + "test_a_law_is_that_of_sampled_levels"),
    "scores of the next site": bug("a site's residual sum is read from the column of another site",
        name_in(f"{_LOGIT}_table", "SiteSums", _of_the_next_site), _TESTS + "test_sums_are_those_of_each_site"),
    "noise taken for levels": bug("the noise of residual sums is not subtracted from the variance between sites",
        member(SiteSums, "site_noise", lambda sums, b: 0.0), _TESTS + "test_intervals_cover"),
    "levels of a normal fourth moment": bug("tau's interval ignores that mean outcomes are bounded",
        name_in(_LOGIT, "_share", lambda right: lambda *given: 0.0),
        _TESTS + "test_bounded_means_change_the_degrees_of_tau"),
    "rare outcomes far from their weights": bug("the rule for steps of rare outcomes is that of common ones",
        name_in(_LOGIT, "_RARE", lambda right: 99.0), _TESTS + "test_rare_outcomes_need_nearer_weights"),
    "a promise of persons planned": bug("a round is planned under a promise that its reader refuses",
        name_in(f"{_LOGIT}_table", "_check_promise", _without_promise),
        _TESTS + "test_a_promise_that_no_reader_accepts_is_refused_before_it_is_spent"),
}  # fmt: skip
