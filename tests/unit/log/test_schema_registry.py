"""What a registry that is away, closed, strange or of another opinion means: a little server gives the answers.

Real one   integration_tests/kafka/test_registry.py asks Apicurio.
"""

from __future__ import annotations

import json
import socket
import threading
from collections.abc import Iterator
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import pytest

from tablestore_engine.errors import FixRequest, RetryError
from tablestore_engine.log.avro_schema import AvroSchemas, SchemaIds
from tablestore_engine.log.kafka import schema_registry as module
from tablestore_engine.log.kafka.broker_check import check_registry
from tablestore_engine.log.kafka.client_config import ClientConfig
from tablestore_engine.log.kafka.schema_registry import SchemaRegistry

TOPIC = "shop.orders"
BOTH = AvroSchemas(key='"string"', value='"long"')


@dataclass
class Answers:
    """`given`: path → (status, JSON text); `asked`: (method, path, log-in) of each request."""

    url: str
    given: dict[str, tuple[int, str]] = field(default_factory=dict)
    asked: list[tuple[str, str, str | None]] = field(default_factory=list)

    def client(self, **more: str) -> ClientConfig:
        """Of the log of `demo.t`."""
        said = {
            "url": self.url,
            "retries.wait.ms": "1",
            **{key.replace("_", "."): text for key, text in more.items()},
        }
        return ClientConfig({}, said, subject="the log of demo.t", timeout_s=5)


@pytest.fixture
def answers() -> Iterator[Answers]:
    """A server on a free port; a path that is not given is unknown (404)."""

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            path = self.path.partition("?")[0]
            found.asked.append((self.command, path, self.headers.get("Authorization")))
            self.rfile.read(int(self.headers.get("Content-Length") or 0))
            status, text = found.given.get(path, (404, '{"error_code":40401,"message":"not found"}'))
            self.send_response(status)
            self.send_header("Content-Length", str(len(text)))
            self.end_headers()
            self.wfile.write(text.encode())

        do_POST = do_GET  # noqa: N815 - the server's name

        def log_message(self, *_: object) -> None:
            """Nothing on the screen."""

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    thread = threading.Thread(target=server.serve_forever, args=(0.01,), daemon=True)
    thread.start()
    found = Answers(f"http://127.0.0.1:{server.server_address[1]}")
    yield found
    server.shutdown()
    server.server_close()
    thread.join()


def check_path(subject: str) -> str:
    """Where compatibility is asked."""
    return f"/compatibility/subjects/{subject}/versions"


def test_a_subject_that_does_not_exist_takes_anything(answers: Answers) -> None:
    """Both subjects are asked for, by topic; nothing is registered by a check."""
    with SchemaRegistry(answers.client()) as registry:
        registry.check(BOTH, TOPIC)
    assert [path for _, path, _ in answers.asked] == [
        check_path("shop.orders-key"),
        check_path("shop.orders-value"),
    ]


def test_numbers_are_the_registrys(answers: Answers) -> None:
    """Each schema has that of its subject, 0 where there is none; what was registered once is remembered."""
    answers.given = {
        "/subjects/shop.orders-key/versions": (200, '{"id":7}'),
        "/subjects/shop.orders-value/versions": (200, '{"id":9}'),
    }
    with SchemaRegistry(answers.client(basic_auth_user_info="me:pass")) as registry:
        assert registry.register(BOTH, TOPIC) == SchemaIds(key=7, value=9)
        assert registry.register(AvroSchemas(value='"long"'), TOPIC) == SchemaIds(value=9)
        assert registry.register(AvroSchemas(), TOPIC) == SchemaIds()
    assert [(method, login) for method, _, login in answers.asked] == [("POST", "Basic bWU6cGFzcw==")] * 2


@pytest.mark.parametrize(
    ("status", "text", "code"),
    [
        (200, '{"is_compatible":false}', "TS1769"),
        (409, '{"error_code":409,"message":"incompatible"}', "TS1769"),
        (401, '{"error_code":401,"message":"who"}', "TS1768"),
        (403, '{"error_code":403,"message":"no"}', "TS1768"),
        (500, '{"error_code":50001,"message":"store"}', "TS1767"),
        (503, "busy", "TS1767"),
        (422, '{"error_code":42201,"message":"bad"}', "TS1772"),
        (302, "", "TS1772"),
        (200, "<html>", "TS1772"),
        (200, "{}", "TS1772"),
        (200, "null", "TS1772"),
        (200, "[]", "TS1772"),
    ],
)
def test_an_answer_means_what_to_do(answers: Answers, status: int, text: str, code: str) -> None:
    """Try again (TS1767), log in (TS1768), change the columns (TS1769), or look at the address (TS1772)."""
    answers.given = {check_path("shop.orders-value"): (status, text)}
    settings = answers.client(basic_auth_user_info="me:hunter2")
    with SchemaRegistry(settings) as registry, pytest.raises((RetryError, FixRequest)) as caught:
        registry.check(AvroSchemas(value='"long"'), TOPIC)
    assert caught.value.code == code
    assert isinstance(caught.value, RetryError) == (code == "TS1767")
    assert "hunter2" not in str(caught.value)
    assert "demo.t" in str(caught.value)


def test_a_refusal_at_registration_is_the_same_error(answers: Answers) -> None:
    """The columns' fault, whenever the registry says so."""
    answers.given = {
        "/subjects/shop.orders-value/versions": (409, '{"error_code":409,"message":"READER_FIELD_MISSING"}')
    }
    with SchemaRegistry(answers.client()) as registry, pytest.raises(FixRequest, match="TS1769") as caught:
        registry.register(AvroSchemas(value='"long"'), TOPIC)
    assert "READER_FIELD_MISSING" in str(caught.value)


def test_schemas_are_found_by_their_number(answers: Answers) -> None:
    """Their text; an unknown one is a ValueError, since the message is to blame; the server's fault is not its."""
    answers.given = {
        "/schemas/ids/4": (200, json.dumps({"schema": '"long"'})),
        "/schemas/ids/5": (500, '{"error_code":1,"message":"-"}'),
    }
    with SchemaRegistry(answers.client()) as registry:
        assert registry.find_schema(4) == '"long"'
        with pytest.raises(ValueError, match="no schema 3"):
            registry.find_schema(3)
        with pytest.raises(RetryError, match="TS1767"):
            registry.find_schema(5)


@pytest.mark.parametrize(
    "url", ["http://127.0.0.1:1", "http://me:hunter3@127.0.0.1:1", "http://no.such.host.invalid"]
)
def test_a_registry_that_is_away_may_come_back(url: str) -> None:
    """TS1767 with the address and without the password in it."""
    answers = Answers(url)
    with SchemaRegistry(answers.client()) as registry, pytest.raises(RetryError, match="TS1767") as caught:
        registry.check(BOTH, TOPIC)
    assert "hunter3" not in str(caught.value)
    assert url.rpartition("@")[2].removeprefix("http://") in str(caught.value)


def test_a_registry_that_never_answers_is_given_up() -> None:
    """A port that takes the connection and says nothing: TS1767 after the time-out."""
    with socket.create_server(("127.0.0.1", 0)) as server:
        answers = Answers(f"http://127.0.0.1:{server.getsockname()[1]}")
        settings = answers.client(timeout="1", max_retries="0")
        with SchemaRegistry(settings) as registry, pytest.raises(RetryError, match="TS1767"):
            registry.check(BOTH, TOPIC)


@pytest.mark.parametrize(
    "more",
    [
        {"url": "ftp://x"},
        {"url": "http://[x"},
        {"timeout": "soon"},
        {"basic_auth_user_info": "hunter2"},
        {"ssl_ca_location": "/no/such/file"},
        {"no_such_setting": "1"},
    ],
)
def test_settings_that_the_client_does_not_take_are_refused(more: dict[str, str]) -> None:
    """TS1770, or TS1767 for an address that only looks like one; no secret is shown."""
    settings = Answers("http://127.0.0.1:1").client(**more)
    refused = pytest.raises((FixRequest, RetryError), match=r"TS17(67|70)")
    with refused as caught, SchemaRegistry(settings) as registry:
        registry.check(BOTH, TOPIC)
    assert "hunter2" not in str(caught.value)


def test_without_its_client_a_log_with_avro_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    """TS1771 names the extra."""
    monkeypatch.setattr(module, "_CLIENT", "confluent_kafka.no_such_module")
    with pytest.raises(FixRequest, match="TS1771") as caught:
        SchemaRegistry(Answers("http://127.0.0.1:1").client())
    assert "dbt-tablestore[avro]" in str(caught.value)


def test_the_check_of_a_profile_asks_the_registry(answers: Answers) -> None:
    """Its address, without the log-in, when it answers; the error when it does not."""
    answers.given = {"/schemas/types": (200, '["AVRO"]')}
    host = answers.url.removeprefix("http://")
    assert check_registry({"schema.registry.url": f"http://me:hunter2@{host}"}) == f"http://***@{host}"
    with pytest.raises(RetryError, match="TS1767"):
        check_registry({"schema.registry.url": "http://127.0.0.1:1"})
