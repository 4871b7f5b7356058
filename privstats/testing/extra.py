"""The only import of hypothesis, so that its absence raises one clear error."""

from __future__ import annotations

from privstats import optional_dependencies

optional_dependencies.require("hypothesis", by="privstats.testing")

import hypothesis  # noqa: E402 - after the sentence about its absence
from hypothesis import strategies  # noqa: E402
from hypothesis.extra import numpy as arrays  # noqa: E402

__all__ = ["arrays", "hypothesis", "strategies"]
