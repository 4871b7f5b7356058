"""The one place where hypothesis is imported, so that its absence is said in one sentence."""

from __future__ import annotations

from privstats.errors import MissingExtraError

try:
    import hypothesis
    from hypothesis import strategies
    from hypothesis.extra import numpy as arrays
except ImportError:
    raise MissingExtraError("privstats.testing needs hypothesis; pip install 'privstats[testing]'") from None

__all__ = ["arrays", "hypothesis", "strategies"]
