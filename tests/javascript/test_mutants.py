"""Likely mistakes in the client, planted one by one in a copy of it: its own tests must fail for each."""

import shutil
import subprocess
from dataclasses import dataclass
from pathlib import Path

import pytest

from tests.javascript.node import CLIENT, needs_node

pytestmark = [pytest.mark.nightly, pytest.mark.slow, needs_node]
ROOT = CLIENT.parents[1]
VECTORS = ("tests/moments/vectors", "tests/secagg/vectors", "tests/contrib/http/vectors")


@dataclass(frozen=True)
class Mutant:
    """A mistake: the file, what stands there, what would stand there, and the tests that must see it."""

    name: str
    file: str
    right: str
    wrong: str
    seen_by: str


MUTANTS = (
    Mutant("ties are rounded up", "grid", "size < ONE ? Math.sign(value) * (size + ONE - ONE)",
           "size < ONE ? Math.round(value)", "measure"),
    Mutant("a row on the edge is clipped", "grid", "if (dot(steps, steps) <= radius",
           "if (dot(steps, steps) < radius", "measure"),
    Mutant("the error of a norm is forgotten", "grid", "(norm + error)", "norm", "measure"),
    Mutant("texts become numbers", "cells", 'typeof value !== "number" || !Number.isFinite(value)',
           "!Number.isFinite(Number(value))", "measure"),
    Mutant("a text is trimmed", "cells", "values.indexOf(integers ? alike(value, values) : value)",
           "values.indexOf(integers ? alike(value, values) : value.trim())", "measure"),
    Mutant("a blank is the last cell", "cells", 'if (!variable.missing) refuse("no_cell",',
           'if (false) refuse("no_cell",', "measure"),
    Mutant("15 digits are forgotten", "cells", "=== round15(mark)) return mark", "=== mark) return mark", "measure"),
    Mutant("a missing number is the lowest", "measure", "value === null ? 0", "value === undefined ? 0", "measure"),
    Mutant("groups are mixed", "measure", "first + Math.floor((cell * groups) / size)", "first", "measure"),
    Mutant("a fold is ignored", "accepted", "folds=1", "folds", "measure"),
    Mutant("the hedge leaves the sender out", "seal", "join(u32(sender), ...lanes", "join(...lanes", "seal"),
    Mutant("borrow is lost", "lanes", "stream[i + 1] + borrow", "stream[i + 1]", "seal"),
    Mutant("one seed for all helpers", "seal", "seed/${i + 1}", "seed/1", "seal"),
    Mutant("X-Wing forgets X25519", "xwing", "join(shared, exchanged, enc,", "join(shared, enc,", "xwing"),
    Mutant("one encapsulation for all boxes", "seal", "`${purpose}/${place}`", "`${purpose}/0`", "xwing"),
    Mutant("the leader's box is left out of the root", "seal", "await boxesRoot(boxes)",
           "await boxesRoot(boxes.slice(1))", "seal"),
    Mutant("root is kept", "seal", "  root.fill(0);\n", "", "seal"),
    Mutant("a plan is not pinned", "plan", " || toHex(await studyOf(run, digest, roster)) !== pins.study", "", "run"),
    Mutant("an offer's signature is not looked at", "plan", "!(await verify(named, offer.subarray(-64), statement))",
           "false", "run"),
    Mutant("a box key may be of low order", "plan", ".catch(wrong)", ".catch(() => null)", "run"),
    Mutant("box keys may be equal", "plan", '["identity", "boxKey"]', '["identity"]', "run"),
    Mutant("keys never end", "plan", "if (until <= now / 1000)", "if (until < 0)", "run"),
    Mutant("an unknown key is skipped", "accepted", "!rows.has(key) || ", "", "run"),
    Mutant("a key of a variable is skipped", "accepted", "if (ACCEPTED[path])", "if (false)", "measure"),
    Mutant("a seal replaces another one", "run", "await store.add(record)",
           "await store.update(record)", "run"),
    Mutant("a second number is sealed for", "run", "kept.index !== this.#held.index", "false", "run"),
    Mutant("runs are not counted", "run", "> this.#held.plan.devices.most_runs", "> 1e9", "run"),
    Mutant("runs of several processes are not counted again", "run", "await this.#limit(0)", "void 0", "account"),
    Mutant("each run has a lock of its own", "run", "exclusive(this.#held.names[0], async",
           "exclusive(this.#ids[0], async", "account"),
    Mutant("a report that is not stored is sent", "run", "kept?.hash !== report.hash",
           "kept && kept.hash !== report.hash", "account"),
    Mutant("a report under other keys is sent", "run", "contextIn(kept.report) !== toHex(this.#held.context)",
           "false", "run"),
    Mutant("a report of an earlier version is sent", "outbox", "record.context && ", "", "outbox"),
    Mutant("a sent report is kept", "outbox", 'state: "sent", report: null', 'state: "sent"', "run"),
    Mutant("a letter of a link may be wrong", "link", "base32(sum).slice(0, 4) !== check", "false", "run"),
    Mutant("a proxy's page ends a send", "send", "response.status >= 500", "false", "run"),
    Mutant("an error holds the answer", "cells", 'needs ${integers ? "an integer" : "a text"}',
           "is not ${value}", "measure"),
)  # fmt: skip


def planted(folder: Path, mutant: Mutant | None) -> Path:
    """A copy of the client with a mistake in it, beside the vectors that its tests read."""
    client = folder / "clients" / "javascript"
    shutil.copytree(CLIENT, client, ignore=shutil.ignore_patterns("node_modules"))
    for vectors in VECTORS:
        shutil.copytree(ROOT / vectors, folder / vectors)
    if mutant is not None:
        path = client / "src" / f"{mutant.file}.js"
        text = path.read_text("utf-8")
        assert text.count(mutant.right) == 1, mutant
        path.write_text(text.replace(mutant.right, mutant.wrong), "utf-8")
    return client


def outcome_of(client: Path, *names: str) -> subprocess.CompletedProcess:
    files = [f"test/{name}.test.js" for name in names]
    return subprocess.run(["node", "--test", *files], cwd=client, capture_output=True, text=True, timeout=120)


@pytest.mark.parametrize("mutant", MUTANTS, ids=lambda mutant: mutant.name)
def test_a_likely_mistake_is_seen(tmp_path, mutant):
    done = outcome_of(planted(tmp_path, mutant), mutant.seen_by)
    assert done.returncode == 1, "no test of the client noticed"


def test_without_a_mistake_the_copy_passes(tmp_path):
    done = outcome_of(planted(tmp_path, None), *sorted({mutant.seen_by for mutant in MUTANTS}))
    assert done.returncode == 0, done.stdout
