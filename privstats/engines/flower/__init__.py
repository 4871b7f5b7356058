"""The folders of ``engines.network`` as nodes of Flower: grid, apps, guard, launcher and template.

No protocol, no cryptography and no session: Flower's transport is not trusted for the sum, the roster is. It needs the
extra ``flower``; nothing below it does.
"""

from __future__ import annotations

from privstats import optional_dependencies

optional_dependencies.require("flwr", by="privstats.engines.flower")
