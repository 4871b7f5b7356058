"""What the courses' tests share: noise of nothing but zeros, and a copy of a course that is under way."""

import shutil
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from privstats.errors import AggregationError
from privstats.secagg.interactive import server
from tests.engines.network.courses.study import CourseStudy, Desk, silence


@pytest.fixture
def silent(monkeypatch: pytest.MonkeyPatch) -> None:
    """Noise of nothing but zeros, so that releases can be held against sums on every integer."""
    silence(monkeypatch)


@pytest.fixture
def fails(monkeypatch: pytest.MonkeyPatch) -> Any:
    """Of a study, have the session of its second round fail."""

    def fail(study: CourseStudy) -> None:
        real = server.unmask

        def unmask(*arguments: Any, **named: Any) -> Any:
            if sorted(path.name for path in (study.host / "nodes").iterdir()) == ["0", "1"]:
                raise AggregationError("unmask", "implausible", "not today")
            return real(*arguments, **named)

        monkeypatch.setattr(server, "unmask", unmask)

    return fail


@pytest.fixture
def desk(under_way: CourseStudy, tmp_path: Path) -> Desk:
    """A copy of the module's course that is under way."""
    shutil.copytree(under_way.place, tmp_path, dirs_exist_ok=True)
    return Desk(replace(under_way, place=tmp_path))
