"""The lowest versions that pyproject.toml admits, as constraints for pip: ``python -m tests.project.minima``.

In ``.ci/minima``, which installs and tests them.
"""

import re
import tomllib
from pathlib import Path

_BOUND = re.compile(r"(?P<name>[\w.-]+)(?:\[[\w,-]+\])?(?:>=|==)(?P<version>[\d.]+)(?:,<[\d.]+)?")
_OWN = "privstats["  # the package's own extras, which are listed by themselves


def lowest(project: Path) -> dict[str, str]:
    """The lowest version of every direct dependency, those of the extras included.

    Raises:
        ValueError: a dependency has no lowest version; the message names it.
    """
    table = tomllib.loads((project / "pyproject.toml").read_text("utf-8"))["project"]
    wanted = [*table["dependencies"], *(row for extra in table["optional-dependencies"].values() for row in extra)]
    found: dict[str, str] = {}
    for row in wanted:
        if row.startswith(_OWN):
            continue
        bound = _BOUND.fullmatch(row)
        if bound is None:
            raise ValueError(f"{row!r} does not say its lowest version; write name>=version")
        found[bound["name"]] = bound["version"]
    return found


if __name__ == "__main__":
    print("\n".join(f"{name}=={version}" for name, version in lowest(Path(__file__).parents[2]).items()))
