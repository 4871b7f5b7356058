"""Attack: a carrier hands the replies of two nodes out as each other's. No sum is wrong, and no party is lost."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from privstats.engines.network.transport import Reply
from tests.engines.network.fake import FolderNet, study_of


def swap(net: FolderNet, kind: str, times: int = 1, nodes: tuple[int, int] = (101, 102)) -> None:
    """Let two nodes' first replies to a kind of message change places."""
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


@pytest.mark.parametrize("times", [1, 3])
@pytest.mark.parametrize("kind", ["open", "step", "hello"])
def test_attack_swapped_replies_change_no_sum_and_lose_no_party(kind: str, times: int, tmp_path: Path) -> None:
    study = study_of(tmp_path)
    net = FolderNet(study)
    swap(net, kind, times)
    (release,) = net.ended().releases
    assert release is not None
    assert np.array_equal(release.vector, study.exact(release.survivors))
    assert release.survivors == (0, 1, 2, 3, 4), net.lines
