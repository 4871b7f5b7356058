"""Sessions over NVIDIA FLARE: its server carries a session's messages, its sites answer from their own folders."""

from __future__ import annotations

from privstats.extend.support import optional_dependencies

optional_dependencies.require("nvflare", by="privstats.contrib.nvflare")
