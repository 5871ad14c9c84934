"""The look at a broker's TLS: addresses, and what is found where no broker is."""

from __future__ import annotations

import socket
import threading
from pathlib import Path

import pytest

from tablestore_engine.log.kafka.access_errors import Trust, parse_addresses, probe_tls


@pytest.mark.parametrize(
    ("text", "wanted"),
    [
        ("a:1", (("a", 1),)),
        ("a:1, b:22 ,c", (("a", 1), ("b", 22), ("c", 9092))),
        ("SASL_SSL://h.example:9093", (("h.example", 9093),)),
        ("[::1]:9092", (("::1", 9092),)),
        ("", ()),
        (",,", ()),
    ],
)
def test_addresses(text: str, wanted: tuple[tuple[str, int], ...]) -> None:
    """As the client reads bootstrap.servers."""
    assert parse_addresses(text) == wanted


def test_nobody_there() -> None:
    """A closed port is no answer, and no opinion about certificates."""
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
    assert probe_tls(("127.0.0.1", port), {}, timeout_s=1).trust is Trust.NO_ANSWER


@pytest.mark.parametrize("said", [b"", b"HTTP/1.1 400 Bad Request\r\n\r\n"])
def test_one_that_speaks_no_tls(said: bytes) -> None:
    """Hanging up, or answering in plain text, is no TLS."""
    with socket.create_server(("127.0.0.1", 0)) as server:

        def answer() -> None:
            connection, _ = server.accept()
            with connection:
                connection.recv(1)
                connection.sendall(said)

        thread = threading.Thread(target=answer)
        thread.start()
        finding = probe_tls(("127.0.0.1", server.getsockname()[1]), {}, timeout_s=5)
        thread.join()
    assert finding.trust is Trust.NO_TLS


@pytest.mark.parametrize("content", [None, b"no certificate"])
def test_own_files(tmp_path: Path, content: bytes | None) -> None:
    """A CA file that is missing or holds no certificate is told as such, before any connection."""
    file = tmp_path / "ca.pem"
    if content is not None:
        file.write_bytes(content)
    assert probe_tls(("127.0.0.1", 1), {"ssl.ca.location": str(file)}).trust is Trust.OWN_FILES
