"""The deliberate bugs of noise that a panel draws, and the bugs themselves: rows as in ``catalogue``, which takes them.

The audits draw a helper's noise as its machine does, hundreds of times; what the machine then does with it is in one
session of theirs, so the unit tests are what sees that.
"""

from __future__ import annotations

from typing import Any

from privstats import session
from privstats.dp.calibration import Noise
from privstats.plan import Plan
from privstats.secagg.upload.helper import Helper
from tests.mutation.mutant import Mutant
from tests.mutation.planting import everywhere_new, member, name_in

__all__ = ["PANEL_MUTANTS"]

right_helper_noise, right_share_sigma = session.helper_noise, Noise.share_sigma

_MACHINES = "tests/plan/test_panel_noise.py::test_every_member_adds_its_noise_to_the_sum_over_the_machines"


def divided_among_members(noise: Noise, segment: Any) -> float:
    """The full noise divided among leader and helpers, as if all of them were honest."""
    return right_share_sigma(noise, segment) / noise.members**0.5


def repeated_helper_noise() -> Any:
    """The first noise that was drawn under a plan is kept and used again."""
    kept: dict[str, Any] = {}

    def drawer(plan: Plan) -> Any:
        draw = right_helper_noise(plan)
        if draw is None:
            return None
        first = kept.setdefault(plan.digest, draw(bytes(32))).lift()
        return lambda seed: plan.ring.encode(first)

    return drawer


PANEL_MUTANTS: dict[str, Mutant] = {
    "a member's noise divided": Mutant(
        "leader and helpers share the noise of the panel's model instead of adding it in full each",
        member(Noise, "share_sigma", divided_among_members),
        "panel",
        ("tests/dp/test_calibration.py::test_every_member_of_a_panel_draws_all_of_the_noise",),
        ("noise", "canary"),
    ),
    "a helper's noise repeated": Mutant(
        "helpers draw their noise once and use it in every run",
        everywhere_new(session.helper_noise, repeated_helper_noise),
        "panel",
        ("tests/test_freshness.py::test_two_releases_of_the_same_sums_have_noise_of_their_own",),
        ("noise",),
    ),
    "a helper's noise forgotten": Mutant(
        "helpers answer without the noise that the plan asks them for",
        member(Helper, "_drawn", lambda helper, roll: None),
        "panel",
        (_MACHINES,),
        (),
    ),
    "a leader's noise forgotten": Mutant(
        "the release of a panel's sum is made without the leader's noise",
        name_in("privstats.session.unmasked", "with_central_noise", lambda right: lambda plan, total, rng: total),
        "panel",
        (_MACHINES,),
        ("noise", "canary"),
    ),
}
