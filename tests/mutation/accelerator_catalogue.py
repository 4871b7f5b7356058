"""The deliberate bugs of sums on an accelerator: rows as in ``catalogue``, which takes them.

No release shows them: each makes sums on a device differ from the host's, or hides that a device computes wrongly.
"""

from collections.abc import Iterator
from typing import Any

from privstats.moments.device_rounds import DeviceRound
from privstats.moments.device_tiles import DeviceTiles
from privstats.moments.tensor_products import wrong_floats
from tests.mutation.mutant import Mutant, bug
from tests.mutation.planting import everywhere, member, name_in

_ROUNDS = "tests/moments/test_device_rounds.py::"
_CACHE = "tests/moments/test_device_cache.py::"
_EXACT = "tests/moments/test_device_exact.py::"
_rest, _result, _start = DeviceTiles.rest, DeviceRound.result, DeviceRound._start


def _last_twice(self: Any) -> Iterator[Any]:
    """Yield a tile that is not full twice."""
    last = self._filled < len(self._rows)
    for tile in _rest(self):
        yield from [tile] * (1 + last)


def _flags_too_early(self: Any) -> Any:
    """Read which vectors escaped, and how many records are finite, before the last tile is summed."""
    import torch

    with torch.inference_mode():
        flags = self._escaped.clone(), self._finite.clone()
        for tile in self._tiles.rest():
            self._flush(torch, *tile)
        self._escaped, self._finite = flags
    return _result(self)


def _floats(self: Any, torch: Any, rows: Any) -> Any:
    """Sum tiles in float64."""
    tiles = _start(self, torch, rows)
    self._totals = {letter: total.double() for letter, total in self._totals.items()}
    return tiles


def _zero(torch: Any, *_: Any) -> Any:
    return torch.zeros((), dtype=torch.int64)


ACCELERATOR_MUTANTS: dict[str, Mutant] = {
    "the last tile counts twice": bug("records of a tile that is not full at the end are in a device's sums twice",
        member(DeviceTiles, "rest", _last_twice),
        _ROUNDS + "test_usual_records_of_any_type_have_the_hosts_integers"),
    "flags before the last tile": bug(
        "a device's round reads whether a clipped vector escaped the ball before it sums the last tile",
        member(DeviceRound, "result", _flags_too_early),
        _ROUNDS + "test_a_clipped_vector_outside_the_ball_is_never_in_a_sum"),
    "totals of tiles in floats": bug("a device's round adds tiles in float64, which rounds sums beyond 2**53",
        member(DeviceRound, "_start", _floats),
        _ROUNDS + "test_sums_beyond_2_to_53_stay_exact"),
    "cached rows of other records": bug("a device's cached rows are reused for whatever records come in that place",
        name_in("privstats.moments.device_cache", "checksum", lambda right: _zero),
        _CACHE + "test_rounds_of_one_cache_have_the_hosts_integers_whatever_changes_between_them"),
    "emulated float64 passes": bug("no product shows whether a device multiplies float64 with fewer than 53 bits",
        everywhere(wrong_floats, _zero),
        _EXACT + "test_a_device_that_multiplies_with_fewer_bits_is_refused"),
}  # fmt: skip
