"""Certificates of the secure development broker: a CA that signs one key and is thrown away.

Steps      1 a CA in the key store 2 the broker's key, signed by it, for 127.0.0.1 and localhost 3 the CA's certificate
           goes into a file of its own 4 the CA's key is deleted: nobody can sign with it any more
HOW        keytool, as a class of the Java that runs the broker: it is in every JRE, so no package is added for it.
           Its password comes by a file: command lines can be read by every user of the machine.
CRASH      all of it is made in a folder with a leading dot, which one rename puts in place.
"""

from __future__ import annotations

import json
import shutil
import subprocess
from dataclasses import dataclass
from pathlib import Path

from tablestore_engine.errors import RetryError
from tablestore_engine.runtime.outside_world import Runtime

BROKER_PRINCIPAL = "CN=tablestore-broker"
_DAYS, _DAYS_LEFT = 365, 30
_DAY_MS = 86_400_000
_STORE, _CA, _PASSWORD, _END = "broker.p12", "ca.pem", "password", "end.json"


@dataclass(frozen=True)
class Certificates:
    """`folder` holds them."""

    folder: Path

    @property
    def store(self) -> Path:
        """The broker's key and chain, PKCS#12."""
        return self.folder / _STORE

    @property
    def ca(self) -> Path:
        """What clients trust, PEM."""
        return self.folder / _CA

    def password(self) -> str:
        return (self.folder / _PASSWORD).read_text("utf-8")


def ensure_certificates(folder: Path, java_home: str, runtime: Runtime) -> Certificates:
    """Those that are there while they hold, else new ones. Raises RetryError TS1915."""
    if not _holds(folder, runtime.now_ms()):
        work = folder.with_name(f".{folder.name}")
        shutil.rmtree(work, ignore_errors=True)
        work.mkdir(mode=0o700)
        _make(Certificates(work), java_home, runtime)
        shutil.rmtree(folder, ignore_errors=True)
        work.rename(folder)
    return Certificates(folder)


def _holds(folder: Path, now_ms: int) -> bool:
    try:
        end_ms = json.loads((folder / _END).read_text("utf-8"))["end_ms"]
    except (OSError, ValueError, KeyError):
        return False
    return bool(end_ms > now_ms + _DAYS_LEFT * _DAY_MS)


def _make(made: Certificates, java_home: str, runtime: Runtime) -> None:
    password = made.folder / _PASSWORD
    password.touch(mode=0o600)
    password.write_text(runtime.new_uuid(), "utf-8")
    key = ("-genkeypair", "-keyalg", "EC", "-groupname", "secp256r1", "-validity", str(_DAYS))
    _keytool(
        made,
        java_home,
        *key,
        "-alias",
        "ca",
        "-dname",
        "CN=tablestore-development-ca",
        "-ext",
        "bc:c=ca:true",
    )
    _keytool(
        made, java_home, *key, "-alias", "broker", "-dname", BROKER_PRINCIPAL, "-signer", "ca",
        "-ext", "san=ip:127.0.0.1,dns:localhost", "-ext", "eku=serverAuth,clientAuth",
    )  # fmt: skip
    _keytool(made, java_home, "-exportcert", "-rfc", "-alias", "ca", "-file", str(made.ca))
    _keytool(made, java_home, "-delete", "-alias", "ca")
    made.store.chmod(0o600)
    (made.folder / _END).write_text(json.dumps({"end_ms": runtime.now_ms() + _DAYS * _DAY_MS}), "utf-8")


def _keytool(made: Certificates, java_home: str, *arguments: str) -> None:
    java = [str(Path(java_home) / "bin" / "java"), "-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1"]
    store = [
        "-keystore",
        str(made.store),
        "-storetype",
        "PKCS12",
        "-storepass:file",
        str(made.folder / _PASSWORD),
    ]
    done = subprocess.run(
        [*java, "-m", "java.base/sun.security.tools.keytool.Main", *arguments, *store],
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        check=False,
    )
    if done.returncode != 0:
        raise RetryError(
            "TS1915",
            "the development broker has no certificates",
            why=f"keytool of {java_home} ended with status {done.returncode}: "
            f"{(done.stdout or done.stderr).strip()[-300:]}",
            fix="start again; if it stays so set JAVA_HOME to a Java 17 or newer, or start without --secure",
        )
