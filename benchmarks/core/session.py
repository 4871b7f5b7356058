"""Run one session of README's shape, and print as JSON which lines of privstats ran.

    python -P benchmarks/core/session.py

``lines`` starts this program in a process of its own, where nothing is imported yet, with its own checkout or another
one on the path. It therefore imports nothing of ``benchmarks``.
"""

from __future__ import annotations

import json
from pathlib import Path
from trace import Trace
from typing import Any


def released() -> Any:
    """Return a release: a plan is read from its file's text, three parties measure and mask, and one drops out."""
    import numpy as np

    import privstats as ps

    rng = np.random.default_rng(0)
    X = rng.normal(size=(300, 8))
    X /= np.linalg.norm(X, axis=1, keepdims=True)
    y = rng.integers(0, 3, 300)
    proposed = ps.Plan(
        schema=ps.ClassSchema(classes=3, features=8, statistics="NAB", clip_norm=1.0),
        cohort=ps.Cohort(clients=3, min_survivors=2, max_records=500),
        privacy=ps.Privacy(model="distributed", unit="record", adjacency="add-remove", epsilon=3.0, delta=1e-5),
    )
    plan = ps.Plan.from_toml(proposed.to_toml())
    shards = [(X[party::3], y[party::3]) for party in range(3)]
    return ps.simulate(plan, shards, dropouts={plan.masking.upload_step: {1}})


def fitted(release: Any) -> None:
    """Fit README's head to the release."""
    import privstats as ps

    ps.heads.LDA().fit_release(release)


def main() -> None:
    """Print each file that ran, with its lines until the release and those until the head."""
    tracer = Trace(trace=0)
    names: dict[str, Any] = {"released": released, "fitted": fitted}
    tracer.runctx("release = released()", names, names)
    until_release = set(tracer.results().counts)
    tracer.runctx("fitted(release)", names, names)

    import privstats

    package = Path(privstats.__file__).parent
    ran: dict[str, dict[str, list[int]]] = {}
    for file, line in sorted(tracer.results().counts):
        if Path(file).is_relative_to(package):
            rows = ran.setdefault(Path(file).relative_to(package).as_posix(), {"release": [], "head": []})
            rows["head"].append(line)
            rows["release"] += [line] * ((file, line) in until_release)
    print(json.dumps(ran))


if __name__ == "__main__":
    main()
