"""The tests of the client in JavaScript, which are node's own: ``npm test`` in ``clients/javascript`` runs them too."""

import re

import pytest

from tests.javascript.node import CLIENT, needs_node, node


@pytest.mark.ci
@needs_node
def test_the_clients_own_tests_pass():
    done = node("--test", "test/")
    passed = re.search(r"^# pass (\d+)$", done.stdout, re.MULTILINE)
    assert done.returncode == 0, done.stdout[-4000:] + done.stderr[-2000:]
    assert passed
    assert int(passed[1]) >= len([*CLIENT.glob("test/*.test.js")])


@needs_node
def test_a_planted_coercion_is_noticed(tmp_path):
    """The test of the test: a bin that takes texts for numbers fails."""
    cells = (CLIENT / "src" / "cells.js").read_text("utf-8")
    guard = 'if (typeof value !== "number" || !Number.isFinite(value)) refuse("wrong_type", `"${name}"'
    assert guard in cells
    for name in ("english.js", "errors.js", "grid.js", "say.js"):
        (tmp_path / name).write_text((CLIENT / "src" / name).read_text("utf-8"), "utf-8")
    (tmp_path / "package.json").write_text('{"type": "module"}')
    script = 'import { cellOf } from "./cells.js"; cellOf({ name: "age", edges: [0, 40, 60] }, "37");'
    (tmp_path / "look.js").write_text(script)
    for text, fails in ((cells, True), (cells.replace(guard, 'if (false) refuse("wrong_type", `"${name}"'), False)):
        (tmp_path / "cells.js").write_text(text, "utf-8")
        done = node(str(tmp_path / "look.js"))
        assert (done.returncode != 0) is fails, done.stderr
