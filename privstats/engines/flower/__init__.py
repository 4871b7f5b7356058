"""The parties of one session as nodes of Flower: the protocol machines unchanged, Flower as what carries their bytes.

No protocol and no cryptography: Flower's transport is not trusted for the sum, the roster is. A shell of ``engines``
like the loopback; it needs the extra ``flower``.
"""

from __future__ import annotations

from privstats import optional_dependencies

optional_dependencies.require("flwr", by="privstats.engines.flower")
