"""A report from node holds what the report of the library's client holds, also where vectors have several tiles.

Boxes are random in the library, so each is opened; everything else is equal to the byte.
"""

import msgspec
import numpy as np

from privstats.encoding import Ring
from privstats.secagg.upload.messages import Report
from tests.javascript.node import evaluated, needs_node
from tests.secagg.interactive.cohorts import stream
from tests.secagg.upload.cohorts import uploads_of

_SCRIPT = """
import { readFileSync } from "node:fs";
import { fromHex, signingKey, toHex } from "./src/bytes.js";
import { reportOf } from "./src/seal.js";
const told = JSON.parse(readFileSync(process.argv[1], "utf8"));
const boxKeys = told.boxKeys.map((key) => fromHex(key));
const run = { context: fromHex(told.context), boxKeys, segments: told.segments };
const key = await signingKey(fromHex(told.identity));
process.stdout.write(toHex(await reportOf(run, { index: told.sender, key }, told.vector, fromHex(told.root))));
"""


@needs_node
def test_a_report_of_several_tiles_is_pythons(tmp_path):
    segments = (((1 << 16) + 9, 29), ((1 << 16) + 3, 37))
    run = uploads_of(helpers=3, ring=Ring(segments))
    vector = np.random.default_rng(1).integers(-(1 << 28), 1 << 28, run.parameters.ring.size)
    told = {
        "context": run.context.hex(),
        "boxKeys": [offer.box_key.hex() for offer in run.panel.offers],
        "segments": segments,
        "identity": stream("identity 2")(32).hex(),
        "sender": 2,
        "vector": vector.tolist(),
        "root": stream("uploads client 2 0")(32).hex(),
    }
    ((_, ours),) = run.client(2, vector).start()
    theirs = bytes.fromhex(evaluated(_SCRIPT, told, tmp_path))
    random = {"boxes": b"", "signature": bytes(64)}
    one, other = (msgspec.structs.replace(run.read(each, Report), **random) for each in (ours, theirs))
    assert one == other
    for place in range(4):
        assert run.seed(2, theirs, place) == run.seed(2, ours, place)
    run.leader.receive(2, theirs)
    assert run.leader.waiting_for == {0, 1, 3, 4, 5}
