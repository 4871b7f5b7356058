"""What an account has left for one more release, in words; it decides nothing."""

from __future__ import annotations

import math

from privstats.dp.accounts import TOLERANCE, Account, epsilon_of

__all__ = ["room", "room_left"]


def room_left(account: Account) -> str:
    """What one more release may promise at most under the cap in force; empty where nothing is left, or no cap is.

    At the cap's delta the epsilon of mu = sqrt(mu_cap^2 - mu^2). At delta 0, where all that counts is pure, what the
    sum of epsilons has left, whatever is released; the cap admits either, so a pure release of small mu may promise
    more. Each is cut to four digits, so that it fits.
    """
    if account.cap is None:
        return ""
    left = math.sqrt(max(0.0, account.mu_cap**2 - account.mu**2))
    halves = [(epsilon_of(left, account.delta), account.delta)] if account.delta else []
    if account.counted or not halves:  # before the first release both are the cap's epsilon
        halves.append((account.epsilon - account.pure, 0.0))
    told = [f"epsilon {_cut(most)} at delta {delta:g}" for most, delta in halves if most > TOLERANCE * account.epsilon]
    return f"at most {', or '.join(told)}" if told else ""


def room(account: Account) -> str:
    """The same in a line, for those who ask whether a second study may run."""
    left = room_left(account)
    return f"room for one more release of {left}" if left else "no room for another release"


def _cut(epsilon: float) -> str:
    unit = 10.0 ** (math.floor(math.log10(epsilon)) - 3)
    return f"{math.floor(epsilon / unit * (1 + TOLERANCE)) * unit:.4g}"
