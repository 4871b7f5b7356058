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
