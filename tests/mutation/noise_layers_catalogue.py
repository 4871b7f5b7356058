"""The deliberate bugs of excess noise that clients remove, and the bugs themselves: rows as in ``catalogue``."""

import math
from collections.abc import Sequence
from itertools import pairwise
from typing import Any

from privstats.dp.calibration import Noise, layer_sigmas
from privstats.secagg import machines as noise_layers
from privstats.secagg.interactive import checks
from tests.mutation.mutant import Mutant, bug
from tests.mutation.planting import everywhere, member, name_in

right_layer_seeds, right_layer_sigmas = noise_layers.layer_seeds, layer_sigmas

_DP = "tests/dp/test_noise_layers.py::"
_MACHINES = "tests/secagg/interactive/test_noise_layers.py::"
_SESSION = "tests/session/test_excess_noise.py::"


def honest_and_colluders(noise: Noise, level: int) -> int:
    """All of a level's clients count as honest, but for those of the fewest."""
    return noise.honest_shares if level == noise.levels[0] else level


def rounded_up(variance: float, honest: Sequence[int]) -> tuple[float, ...]:
    """Layers a 24th bit too wide: what is left lacks it."""
    layers = [math.sqrt(variance * (b - a) / (a * b)) * (1 + 2.0**-23) for a, b in pairwise(honest)]
    return math.sqrt(variance / honest[0] - math.fsum(sigma * sigma for sigma in layers)), *layers


def all_layers(right: Any) -> Any:
    """A client opens as if everybody on the roster were in the sum."""
    return lambda levels, proven: right(levels, levels[-1])


def one_seed(value: bytes, opened: int) -> tuple[bytes, ...]:
    """Every layer is drawn from the seed of the lowest, which the first opening shows."""
    return right_layer_seeds(value, opened)[:1] * opened


def nothing_subtracted(right: Any) -> Any:
    return lambda plan, total, openings: total


NOISE_LAYERS_MUTANTS: dict[str, Mutant] = {
    "layers that count colluders": bug(
        "what is left at a level is divided among its clients instead of its honest ones",
        member(Noise, "_honest", honest_and_colluders),
        _DP + "test_a_plan_for_the_fewest_of_twelve_releases_what_one_for_all_twenty_does", plan="layers",
        audits=("noise",)),
    "layers rounded up": bug("a layer is a little wider than what may be taken away",
        everywhere(right_layer_sigmas, rounded_up),
        _DP + "test_whatever_each_client_opens_the_honest_keep_the_promised_variance"),
    "all layers opened": bug("a client opens all its layers, whoever is on the list",
        name_in("privstats.secagg.interactive.client", "opened_layers", all_layers),
        _MACHINES + "test_as_many_layers_are_opened_as_clients_are_in_the_sum"),
    "one seed for all layers": bug("all layers of a client are drawn from one seed, which the first opening shows",
        everywhere(right_layer_seeds, one_seed), _MACHINES + "test_an_opening_tells_nothing_above_it"),
    "openings unchecked": bug("the server takes any seeds of noise for a client's own",
        everywhere(checks.check_layers, lambda message, opened, commitment: None),
        _MACHINES + "test_a_liar_opens_neither_more_nor_less_than_the_list_says"),
    "openings not subtracted": bug("a release says that excess noise was removed and still has it",
        name_in("privstats.session.unmasked", "without_excess", nothing_subtracted),
        _SESSION + "test_a_release_is_the_sum_of_what_every_client_left", plan="layers", audits=("noise",)),
}  # fmt: skip
