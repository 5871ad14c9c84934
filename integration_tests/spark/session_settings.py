"""Settings of a session for a while."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from pyspark.sql import SparkSession


@contextmanager
def with_setting(session: SparkSession, name: str, value: str) -> Iterator[None]:
    """The session's setting has this value inside."""
    before = session.conf.get(name)
    session.conf.set(name, value)
    try:
        yield
    finally:
        session.conf.set(name, str(before))
