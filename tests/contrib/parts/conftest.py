"""Engines as users start them; a test is skipped with the reason where one is not installed."""

import shutil
import sys
from collections.abc import Callable, Iterator
from typing import Any

import pytest


@pytest.fixture
def spark(monkeypatch: pytest.MonkeyPatch) -> Iterator[Any]:
    """A classic session in this machine's Java."""
    yield from session(monkeypatch, lambda builder: builder.master("local[2]"))


@pytest.fixture
def spark_connect(monkeypatch: pytest.MonkeyPatch) -> Iterator[Any]:
    """A session over Spark Connect, whose server this machine's Java runs."""
    for name in ("grpc_status", "zstandard"):
        pytest.importorskip(name, reason=f"{name} is not installed, which pyspark[connect] needs")
    own = ("SPARK_CONNECT_AUTHENTICATE_TOKEN", "SPARK_CONNECT_MODE_ENABLED", "SPARK_LOCAL_REMOTE", "SPARK_REMOTE")
    for name in own:  # which pyspark sets itself
        monkeypatch.setenv(name, "")
        monkeypatch.delenv(name)
    yield from session(monkeypatch, lambda builder: builder.remote("local[2]"))


def session(monkeypatch: pytest.MonkeyPatch, where: Callable[[Any], Any]) -> Iterator[Any]:
    """Start Spark as users start it, and stop it afterwards."""
    for name in ("SPARK_AUTH_SOCKET_TIMEOUT", "SPARK_BUFFER_SIZE"):  # which it sets itself
        monkeypatch.setenv(name, "")
    monkeypatch.setenv("PYSPARK_PYTHON", sys.executable)  # its workers run this environment
    pyspark = pytest.importorskip("pyspark.sql", reason="pyspark is not installed")
    if shutil.which("java") is None:
        pytest.skip("there is no Java on this machine")
    settings_ = {"spark.ui.enabled": "false", "spark.sql.shuffle.partitions": "2", "spark.sql.session.timeZone": "UTC"}
    builder = where(pyspark.SparkSession.builder)
    for name, value in settings_.items():
        builder = builder.config(name, value)
    session = builder.getOrCreate()
    try:
        yield session
    finally:
        session.stop()


@pytest.fixture
def ray() -> Iterator[Any]:
    ray = pytest.importorskip("ray", reason="ray is not installed")
    ray.init(num_cpus=2, include_dashboard=False, configure_logging=False, log_to_driver=False)
    try:
        yield ray
    finally:
        ray.shutdown()
