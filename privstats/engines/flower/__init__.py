"""Runs the folders of ``engines.network`` as nodes of Flower: grid, apps, guard, launcher and template.

It contains no protocol, cryptography or session: the sum depends on the roster and not on Flower's transport. Only this
package needs the extra ``flower``.
"""

from __future__ import annotations

from privstats import optional_dependencies

optional_dependencies.require("flwr", by="privstats.engines.flower")
