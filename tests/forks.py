"""Forked children of a test: what a call gives in one, and one that goes on beside the test until it is killed."""

import os
from collections.abc import Callable
from multiprocessing import get_context
from multiprocessing.process import BaseProcess


def beside(act: Callable[..., object], *arguments: object) -> BaseProcess:
    """A forked process that does it, with ``kill``, ``join`` and ``exitcode``."""
    process = get_context("fork").Process(target=act, args=arguments)
    process.start()
    return process


def in_a_fork(call: Callable[[], object]) -> str:
    """What ``call`` gives in a forked child, as text; the name of its error and its words where it raises."""
    reading, writing = os.pipe()
    child = os.fork()
    if not child:
        try:
            answer = str(call())
        except Exception as error:
            answer = f"{type(error).__name__}: {error}"
        os.write(writing, answer.encode())
        os._exit(0)
    os.close(writing)
    os.waitpid(child, 0)
    with os.fdopen(reading, "rb") as pipe:
        return pipe.read().decode()
