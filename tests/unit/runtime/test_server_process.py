"""What is told of the output of a server that did not start."""

from __future__ import annotations

from tablestore_engine.runtime.server_process import first_words, last_words

CONNECT = """12:00:00 [main] WARN a.b.C - nothing to worry
12:00:01 [pool-4-thread-1] ERROR o.a.k.ConnectStandalone - Failed to create connector
12:00:01 [main] ERROR o.a.k.ConnectStandalone - Stopping after connector error
java.util.concurrent.ExecutionException: configuration is invalid and contains the following 1 error(s):
Error while validating connector config: FATAL: password authentication failed for user "postgres"
\tat java.base/java.lang.Thread.run(Thread.java:840)
Caused by: again
\t... 3 more
"""
GOES_DOWN = """MultiException stack 1 of 3
\tat org.glassfish.jersey.internal.ExceptionMapperFactory.find(ExceptionMapperFactory.java:118)
Caused by: org.eclipse.jetty.io.EofException: Closed
"""


def test_trouble_is_told_from_where_it_begins() -> None:
    """What a server says while it goes down (a REST call that it cut off) hid PostgreSQL's sentence once."""
    assert "nothing to worry" not in first_words(CONNECT + GOES_DOWN)
    assert "password authentication failed" in first_words(CONNECT + GOES_DOWN)
    assert "password authentication failed" not in last_words(CONNECT + GOES_DOWN)
    assert "Thread.java" not in first_words(CONNECT + GOES_DOWN)


def test_an_output_without_trouble() -> None:
    """Its end; none says so."""
    assert first_words("a\nb\n") == last_words("a\nb\n") == "a | b"
    assert first_words("") == "none"
