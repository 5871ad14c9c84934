"""Log-in and TLS on a real broker: each refusal has its error, the table stays, what is committed is published once."""

from __future__ import annotations

import json
import socket
import ssl
import stat
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager, nullcontext
from pathlib import Path

import pytest
from confluent_kafka.admin import AlterConfigOpType, ConfigEntry, ConfigResource, ResourceType

from integration_tests.kafka.secure import SETTINGS, LoggedTable, Realm, await_state
from tablestore_engine.api import Engine
from tablestore_engine.devservers.broker_certificates import ensure_certificates
from tablestore_engine.devservers.kafka_broker import BrokerInfo, find_broker, start_broker, stop_broker
from tablestore_engine.errors import FixRequest, TablestoreError
from tablestore_engine.runtime.java import find_java
from tablestore_engine.runtime.outside_world import SYSTEM, Runtime
from tests.doses import cases

_SECRETS = ("kafka.sasl.password",)


@pytest.fixture(scope="module")
def realm(secure_broker: BrokerInfo) -> Realm:
    """See Realm."""
    return Realm(secure_broker)


@pytest.fixture(scope="module")
def other_ca(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The certificate of a CA that has signed nothing."""
    folder = tmp_path_factory.mktemp("other-ca")
    _keytool(
        folder / "s.p12", "-genkeypair", "-keyalg", "EC", "-alias", "a", "-dname", "CN=other", "-ext", "bc:c"
    )
    _keytool(folder / "s.p12", "-exportcert", "-rfc", "-alias", "a", "-file", str(folder / "ca.pem"))
    return folder / "ca.pem"


def _keytool(store: Path, *arguments: str, password: str = "changeit") -> None:
    java = str(Path(find_java().home) / "bin" / "java")
    place = ["-keystore", str(store), "-storetype", "PKCS12", "-storepass", password]
    tool = [java, "-m", "java.base/sun.security.tools.keytool.Main"]
    subprocess.run([*tool, *arguments, *place], check=True, capture_output=True)


def _port(realm: Realm) -> str:
    return realm.info.url.rpartition(":")[2]


def _changes(realm: Realm, other_ca: Path) -> dict[str, tuple[SETTINGS, str, str, str]]:
    """name → (settings that differ, code, what `why` has, what the next step has)."""
    protocol, ca, brokers = "kafka.security.protocol", "kafka.ssl.ca.location", "kafka.bootstrap.servers"
    return {
        "wrong password": ({"kafka.sasl.password": "S3cr3t-wrong"}, "TS1713", "invalid credentials", "sasl.password"),
        "unknown user": ({"kafka.sasl.username": "nobody"}, "TS1713", "invalid credentials", "sasl.username"),
        "other mechanism": ({"kafka.sasl.mechanism": "PLAIN"}, "TS1713", "SCRAM-SHA-512", "sasl.mechanism"),
        "unknown CA": ({ca: str(other_ca)}, "TS1751", "certificate", "kafka.ssl.ca.location"),
        "other name": (
            {brokers: f"127.1:{_port(realm)}"}, "TS1751", "not valid for '127.1'", "bootstrap.servers",
        ),
        "plaintext": ({protocol: "PLAINTEXT"}, "TS1752", "speaks TLS", "SASL_SSL"),
        "log-in without TLS": ({protocol: "SASL_PLAINTEXT"}, "TS1752", "speaks TLS", "SASL_SSL"),
        "TLS without log-in": ({protocol: "SSL"}, "TS1713", "SASL_SSL", "security.protocol"),
    }  # fmt: skip


NAMES = (
    "wrong password", "unknown user", "other mechanism", "unknown CA", "other name", "plaintext", "log-in without TLS",
    "TLS without log-in",
)  # fmt: skip


@pytest.mark.parametrize("name", cases(NAMES, 1))
def test_a_client_that_is_refused(realm: Realm, other_ca: Path, tmp_path: Path, name: str) -> None:
    """Neither a new table nor a row of an old one comes into being; what was pending is published later, once."""
    different, code, why, fix = _changes(realm, other_ca)[name]
    user = realm.new_user()
    wrong = {**user.settings, **different, "kafka.socket.connection.setup.timeout.ms": "2000"}
    with pytest.raises(FixRequest, match=code):
        LoggedTable(tmp_path / "new", user.topic).write(wrong)
    assert LoggedTable(tmp_path / "new", user.topic).ids() == []
    table = LoggedTable(tmp_path / "old", user.topic)
    table.write(user.settings)
    table.write(user.settings, publish=False)
    for call in (table.write, table.publish):
        with pytest.raises(FixRequest) as refused:
            call(wrong)
        check(refused.value, code, why, fix, wrong)
    assert (table.rows, table.published(user.settings)) == ([1, 2], [1])
    table.publish(user.settings)
    table.publish(user.settings)
    assert table.published(user.settings) == [1, 2]


def check(error: TablestoreError, code: str, why: str, fix: str, settings: SETTINGS) -> None:
    """Code, reason and next step; no secret in any of it, nor in what stands behind it."""
    assert error.code == code
    assert why in error.why
    assert fix in error.fix
    chain: list[BaseException] = [error]
    while chain[-1].__cause__ is not None:
        chain.append(chain[-1].__cause__)
    told = " ".join(f"{one} {one!r} {one.args}" for one in chain)
    assert [key for key in _SECRETS if settings[key] in told] == []


@pytest.mark.nightly  # by day clients that are refused; test_rights.py
def test_a_password_that_changes_behind_the_commit(realm: Realm, tmp_path: Path) -> None:
    """A run that goes on keeps its connection; the next one is TS1713, and with the new password nothing is lost."""
    user = realm.new_user()
    table = LoggedTable(tmp_path, user.topic)
    table.write(user.settings)
    table.write(user.settings, publish=False)
    realm.set_password(user.name, "another")
    with pytest.raises(FixRequest, match="TS1713"):
        table.publish(user.settings)
    changed = {**user.settings, "kafka.sasl.password": "another"}
    table.publish(changed)
    assert table.published(changed) == [1, 2]


@contextmanager
def _with_expired_certificate(realm: Realm, folder: Path) -> Iterator[Path]:
    """The broker's client listener shows a certificate whose time is over, and then its own again; yields its CA."""
    store = folder / "expired.p12"
    key = ("-genkeypair", "-keyalg", "EC", "-startdate", "-10d", "-validity", "5")
    name = ("-dname", "CN=tablestore-broker", "-ext", "san=ip:127.0.0.1,dns:localhost")
    _keytool(store, *key, "-alias", "ca", "-dname", "CN=old", "-ext", "bc:c")
    _keytool(store, *key, *name, "-alias", "broker", "-signer", "ca")
    _keytool(store, "-exportcert", "-rfc", "-alias", "ca", "-file", str(folder / "old.pem"))
    _keytool(store, "-delete", "-alias", "ca")
    own = Path(realm.info.data_dir) / "certificates"
    _show(realm, store, "changeit")
    try:
        yield folder / "old.pem"
    finally:
        _show(realm, own / "broker.p12", (own / "password").read_text())


def _show(realm: Realm, store: Path, password: str) -> None:
    """Returns when the listener shows it: a broker takes a change that the controller has confirmed a moment later."""
    host, _, port = realm.info.url.partition(":")
    before = ssl.get_server_certificate((host, int(port)))
    prefix = "listener.name.client.ssl."
    told = {
        "keystore.location": str(store), "keystore.password": password, "key.password": password,
        "keystore.type": "PKCS12",
    }  # fmt: skip
    changes = [
        ConfigEntry(prefix + key, text, incremental_operation=AlterConfigOpType.SET)
        for key, text in told.items()
    ]
    resource = ConfigResource(ResourceType.BROKER, "1", incremental_configs=changes)
    for done in realm.admin.incremental_alter_configs([resource]).values():
        done.result()
    await_state(lambda: ssl.get_server_certificate((host, int(port))) != before)


@pytest.mark.nightly  # by day a client that is refused, and certificates made again
def test_a_certificate_whose_time_is_over(realm: Realm, tmp_path: Path) -> None:
    """TS1751 says so; the table stays, and with a certificate that holds what is pending is published, once."""
    user = realm.new_user()
    table = LoggedTable(tmp_path / "w", user.topic)
    table.write(user.settings)
    table.write(user.settings, publish=False)
    with _with_expired_certificate(realm, tmp_path) as ca:
        with pytest.raises(FixRequest) as refused:
            table.write({**user.settings, "kafka.ssl.ca.location": str(ca)})
        check(refused.value, "TS1751", "expired", "new certificate", user.settings)
    assert table.rows == [1, 2]
    table.publish(user.settings)
    assert table.published(user.settings) == [1, 2]


def test_a_secure_client_at_a_broker_without_tls(realm: Realm, broker: BrokerInfo, tmp_path: Path) -> None:
    """TS1752 the other way round."""
    wrong = {**realm.least, "kafka.bootstrap.servers": broker.url}
    with pytest.raises(FixRequest) as refused:
        LoggedTable(tmp_path, "t").write(wrong)
    check(refused.value, "TS1752", "speaks no TLS", "SASL_PLAINTEXT", wrong)


@pytest.mark.nightly  # by day test_client_keys.py: a file of settings
def test_the_command_line_works_with_the_printed_file(realm: Realm, tmp_path: Path) -> None:
    """`publish --kafka-config FILE` with the file that `broker start --secure` names, without any other setting."""
    table = LoggedTable(tmp_path, "by-the-file")
    table.write(realm.least)
    table.write(realm.least, publish=False)
    command = [
        sys.executable,
        "-m",
        "tablestore_engine.cli.main",
        "publish",
        "d.t",
        "--warehouse",
        str(tmp_path),
    ]
    assert realm.info.client_config is not None
    done = subprocess.run(
        [*command, "--kafka-config", realm.info.client_config], capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    assert table.published(realm.least) == [1, 2]
    table.drop(realm.least)


def test_doctor_says_what_is_wrong(realm: Realm, tmp_path: Path) -> None:
    """What `tablestore doctor` asks of the brokers meets the same errors."""
    wrong = {**realm.least, "kafka.sasl.password": "x"}
    for log, ends in ((wrong, pytest.raises(FixRequest, match="TS1713")), (realm.least, nullcontext())):
        with Engine(str(tmp_path), log=log, environ={}) as engine, ends:
            assert "answer" in (engine._warehouse.logs.system.check_reachable() or "")


def test_what_the_broker_writes_is_for_this_user_alone(realm: Realm) -> None:
    """Every file with a secret has mode 0600, no command line of the machine has one, and the CA's key is gone."""
    folder = Path(realm.info.data_dir)
    secret = (folder / "certificates" / "password").read_text()
    passwords = [realm.least["kafka.sasl.password"], realm.superuser["kafka.sasl.password"], secret]
    holders = [
        path for path in folder.rglob("*")
        if path.is_file() and "kafka" not in path.relative_to(folder).parts
        and any(one.encode() in path.read_bytes() for one in passwords)
    ]  # fmt: skip
    assert {path.name for path in holders} == {
        "server.properties", "tablestore.properties", "admin.properties", "password",
    }  # fmt: skip
    assert {stat.S_IMODE(path.stat().st_mode) for path in holders} == {0o600}
    command = Path(f"/proc/{realm.info.pid}/cmdline").read_bytes()
    assert not [one for one in passwords if one.encode() in command]
    listed = subprocess.run(
        [str(Path(find_java().home) / "bin" / "java"), "-m", "java.base/sun.security.tools.keytool.Main", "-list",
         "-keystore", str(folder / "certificates" / "broker.p12"), "-storepass", secret],
        check=True, capture_output=True, text=True,
    ).stdout  # fmt: skip
    assert "contains 1 entry" in listed
    assert "broker," in listed


@pytest.mark.nightly
def test_life_of_a_secure_broker(tmp_path: Path) -> None:
    """It keeps port, users and certificates over a restart, is bound to loopback, and the other kind is refused."""
    first = start_broker(tmp_path, secure=True)
    try:
        assert first.client_config is not None
        before = Path(first.client_config).read_text()
        with pytest.raises(FixRequest, match="TS1916"):
            start_broker(tmp_path)
        assert find_broker(tmp_path) == first
        assert stop_broker(tmp_path)
        again = start_broker(tmp_path, secure=True)
        assert (again.url, Path(first.client_config).read_text()) == (first.url, before)
        LoggedTable(tmp_path / "w", "t").write(Realm(again).least)
        assert not _is_open_elsewhere(int(again.url.rpartition(":")[2]))
        state = json.loads((tmp_path / "broker.json").read_text())
        (tmp_path / "broker.json").write_text(
            json.dumps({**state, "nodes": {"1": {**state["nodes"]["1"], "ready": False}}})
        )
        third = start_broker(tmp_path, secure=True)  # whoever started the one before died half-way
        assert third.pid != again.pid
    finally:
        stop_broker(tmp_path)


def test_certificates_are_made_anew_in_their_last_month(tmp_path: Path) -> None:
    """Until then they are the same; a half-made folder of a start that died is not taken."""
    now, day = SYSTEM.now_ms(), 86_400_000
    (tmp_path / ".c").mkdir()
    (tmp_path / ".c" / "end.json").write_text(json.dumps({"end_ms": now * 2}))
    seen = []
    for days in (0, 330, 340):
        at = Runtime(now_ms=lambda days=days: now + days * day)  # type: ignore[misc]
        seen.append(ensure_certificates(tmp_path / "c", find_java().home, at).ca.read_text())
    assert seen[0] == seen[1]
    assert seen[1] != seen[2]
    assert [path.name for path in tmp_path.iterdir()] == ["c"]


def _is_open_elsewhere(port: int) -> bool:
    """On an address of this machine that is not loopback."""
    try:
        with socket.create_connection((socket.gethostbyname(socket.gethostname()), port), 1):
            return not socket.gethostbyname(socket.gethostname()).startswith("127.")
    except OSError:
        return False
