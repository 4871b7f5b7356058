"""The deliberate bugs of noise that a panel draws, and the bugs themselves: rows as in ``catalogue``, which takes them.

The audits draw a helper's noise as its machine does, hundreds of times; what the machine then does with it is in one
session of theirs, so the unit tests are what sees that.
"""

from typing import Any

from privstats import session
from privstats.dp.calibration import Noise
from privstats.plan import Plan
from privstats.secagg.upload.helper import Helper
from tests.mutation.mutant import Mutant, bug
from tests.mutation.planting import everywhere_new, member, name_in

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
    "a member's noise divided": bug(
        "leader and helpers share the noise of the panel's model instead of adding it in full each",
        member(Noise, "share_sigma", divided_among_members),
        "tests/dp/test_calibration.py::test_every_member_of_a_panel_draws_all_of_the_noise", plan="panel",
        audits=("noise", "canary")),
    "a helper's noise repeated": bug("helpers draw their noise once and use it in every run",
        everywhere_new(session.helper_noise, repeated_helper_noise),
        "tests/test_freshness.py::test_two_releases_of_the_same_sums_have_noise_of_their_own", plan="panel",
        audits=("noise",)),
    "a helper's noise forgotten": bug("helpers answer without the noise that the plan asks them for",
        member(Helper, "_sample_noise", lambda helper, roll: None), _MACHINES, plan="panel"),
    "a leader's noise forgotten": bug("the release of a panel's sum is made without the leader's noise",
        name_in("privstats.session.unmasked", "with_central_noise", lambda right: lambda plan, total, rng: total),
        _MACHINES, plan="panel", audits=("noise", "canary")),
}  # fmt: skip
