"""Attack: a carrier hands the replies of two nodes out as each other's. No sum is wrong, and no party is lost."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from privstats.engines.network.nodes import NodeRegistry
from privstats.engines.network.transport import Reply
from tests.engines.network.fake import FolderNet, study_of


def swap(net: FolderNet, kind: str, times: int = 1, nodes: tuple[int, int] = (101, 102)) -> list[str]:
    """Let two nodes' first replies to a kind of message change places; the result is empty once all have."""
    push, pull, names, left = net.push, net.pull, dict[int, str](), [kind] * times

    def pushed(node: int, what: Any, data: bytes, *, ttl: float) -> str:
        name = push(node, what, data, ttl=ttl)
        if node in nodes and net.opened(what, data)[0] in left:
            names[node] = name
        return name

    def pulled(message: str, most: int) -> Reply | None:
        if left and len(names) == 2:
            one, other = (names.pop(node) for node in nodes)
            net.waiting[one], net.waiting[other] = net.waiting[other], net.waiting[one]
            left.pop()
        return pull(message, most)

    net.push, net.pull = pushed, pulled  # type: ignore[method-assign]
    return left


@pytest.mark.parametrize(("kind", "times"), [("open", 1), ("step", 1), ("step", 3), ("hello", 1)])
def test_attack_swapped_replies_change_no_sum_and_lose_no_party(kind: str, times: int, tmp_path: Path) -> None:
    helpers = kind == "hello"  # which alone are asked who they are
    study = study_of(tmp_path, "split" if helpers else "interactive")
    net = FolderNet(study)
    left = swap(net, kind, times, (105, 106) if helpers else (101, 102))
    (release,) = net.ended().releases
    assert release is not None
    assert left == []
    assert np.array_equal(release.vector, study.exact(release.survivors))
    assert release.survivors == (0, 1, 2, 3, 4), net.lines


def test_a_corrected_node_frees_its_former_index_and_whoever_held_the_new_one() -> None:
    registry = NodeRegistry([bytes([place]) * 32 for place in range(3)], 3)
    assert registry.claim(101, 0)
    registry.correct(101, 2)
    assert (registry.place_of(101), registry.node_of(2), registry.node_of(0)) == (2, 101, None)
    assert registry.claim(102, 0)
    registry.correct(101, 0)
    assert (registry.place_of(101), registry.place_of(102), registry.node_of(2)) == (0, None, None)
