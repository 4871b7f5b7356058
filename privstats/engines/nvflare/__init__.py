"""Sessions over NVIDIA FLARE: its server carries a session's messages, its sites answer from their own folders.

Flower's engine beside it does the same over another carrier; what a session is stands in ``engines.network``.
"""

from __future__ import annotations

from privstats import optional_dependencies

optional_dependencies.require("nvflare", by="privstats.engines.nvflare")
