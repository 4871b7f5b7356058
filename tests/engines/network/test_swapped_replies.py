"""Attack: a carrier hands the replies of two nodes out as each other's. No sum is wrong, and no party is lost."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from privstats.engines.network.transport import Reply
from tests.engines.network.fake import FolderNet, study_of

ONE, OTHER = 101, 102


class Swapping(FolderNet):
    """Two nodes' first replies to a kind of message change places."""

    def __init__(self, study: Any, kind: str, times: int) -> None:
        super().__init__(study)
        self.kind, self.left, self.names = kind, times, dict[int, str]()

    def push(self, node: int, kind: Any, data: bytes, *, ttl: float) -> str:
        name = super().push(node, kind, data, ttl=ttl)
        if node in (ONE, OTHER) and self.opened(kind, data)[0] == self.kind and self.left:
            self.names[node] = name
        return name

    def pull(self, message: str, most: int) -> Reply | None:
        if self.left and len(self.names) == 2:
            one, other = self.names.pop(ONE), self.names.pop(OTHER)
            self.waiting[one], self.waiting[other] = self.waiting[other], self.waiting[one]
            self.left -= 1
        return super().pull(message, most)


@pytest.mark.parametrize("times", [1, 3])
@pytest.mark.parametrize("kind", ["open", "step", "hello"])
def test_attack_swapped_replies_change_no_sum_and_lose_no_party(kind: str, times: int, tmp_path: Path) -> None:
    study = study_of(tmp_path)
    net = Swapping(study, kind, times)
    (release,) = net.ended().releases
    assert release is not None
    assert np.array_equal(release.vector, study.exact(release.survivors))
    assert release.survivors == (0, 1, 2, 3, 4), net.lines
