"""A carrier between machines: a post office of files, with one folder per party and one process per party."""

import sys
import time
from pathlib import Path

from privstats.engines.carriers import MessageKind, Reply, answer


def post(path: Path, data: bytes) -> None:
    draft = path.with_suffix(".draft")
    draft.write_bytes(data)
    draft.rename(path)


class PostOffice:
    def __init__(self, boxes: list[Path]) -> None:
        self.boxes, self.sent = boxes, 0

    def online(self) -> list[int]:
        return list(range(len(self.boxes)))

    def name(self, node: int) -> str:
        return self.boxes[node].name

    def push(self, node: int, kind: MessageKind, data: bytes, *, ttl: float) -> str:
        self.sent += 1
        post(self.boxes[node] / f"{self.sent}.{kind}", data)
        return str(self.boxes[node] / f"{self.sent}.reply")

    def pull(self, message: str, most: int) -> Reply | None:
        if not Path(message).exists():
            return None
        code, _, data = Path(message).read_bytes().partition(b"\n")
        Path(message).unlink()
        return Reply(code.decode(), data) if len(data) <= most else Reply("too_large")


def serve(home: str, box: Path) -> None:
    while not (box / "end").exists():
        for letter in box.glob("*.round"):
            reply = answer(home, "round", letter.read_bytes(), simulated=True)
            post(letter.with_suffix(".reply"), reply.code.encode() + b"\n" + reply.data)
            letter.unlink()
        time.sleep(0.01)


if __name__ == "__main__":
    serve(sys.argv[1], Path(sys.argv[2]))
