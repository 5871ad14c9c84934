"""Where the demo's tables lie and its queries run: this machine's disk and cores, or servers that the demo starts.

INVARIANT  servers of the demo keep their data in its folder, and stop with it unless they are to be kept.
INVARIANT  the keys of the S3 server go into the environment of this process alone, from the server's private file.
"""

from __future__ import annotations

import json
import os
import shlex
import subprocess
import sys
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from tablestore_engine.api import FixRequest
from tablestore_engine.spi import absolute_address

S3, CLUSTER = "s3", "cluster"  # folders of the servers' data, kept from run to run


@dataclass(frozen=True)
class DemoPlace:
    """`address` of the warehouse; `objects`: the folder in which another program finds its files; `master` and `conf`
    of Spark; `restart`: what a shell must do before it can use the warehouse again.
    """

    address: str
    objects: Path
    master: str = "local[2]"
    conf: Mapping[str, str] = field(default_factory=dict)
    restart: Sequence[str] = ()

    @classmethod
    def of_folder(cls, folder: Path) -> DemoPlace:
        """The disk of this machine."""
        return cls(str(folder / "warehouse"), folder / "warehouse")

    @property
    def profile(self) -> str:
        """The lines of profiles.yml that say where tables lie and queries run."""
        is_folder = self.address == str(self.objects)
        spark: dict[str, Any] = {"master": self.master, **({"conf": dict(self.conf)} if self.conf else {})}
        warehouse = "./warehouse" if is_folder else json.dumps(self.address)
        return f"      warehouse: {warehouse}\n      spark: {json.dumps(spark)}\n"


@contextmanager
def open_place(folder: Path, *, on_s3: bool, on_cluster: bool, keep: bool) -> Iterator[DemoPlace]:
    """Starts what the demo needs, the S3 server first: workers inherit its keys. Raises FixRequest TS1868."""
    with ExitStack() as servers:
        place = DemoPlace.of_folder(folder)
        if on_s3:
            place = _on_s3(folder, servers, keep=keep)
        if on_cluster:
            started = _start(CLUSTER, folder, servers, "--workers", "2", keep=keep)
            place = DemoPlace(place.address, place.objects, started["master"], started["conf"], place.restart)
        yield place


def _on_s3(folder: Path, servers: ExitStack, *, keep: bool) -> DemoPlace:
    started = _start(S3, folder, servers, keep=keep)
    for line in Path(started["credentials"]).read_text().splitlines():
        name, _, value = line.removeprefix("export ").partition("=")
        if line.startswith("export "):
            os.environ[name] = value
    address = absolute_address(started["warehouse"], folder, started["storage"])
    _, _, inside = str(started["warehouse"]).partition("://")
    restart = (
        f"tablestore s3 start --data-dir {S3}",
        f"source {shlex.quote(started['credentials'])}",
        f"export TABLESTORE_WAREHOUSE={shlex.quote(address)}",
    )
    return DemoPlace(address, folder / S3 / "objects" / inside, restart=restart)


def _start(server: str, folder: Path, servers: ExitStack, *words: str, keep: bool) -> dict[str, Any]:
    """The server's JSON answer."""
    found: dict[str, Any] = json.loads(_run(server, "start", folder, *words))
    if not keep:
        servers.callback(_run, server, "stop", folder)
    return found


def _run(server: str, action: str, folder: Path, *words: str) -> str:
    command = [sys.executable, "-m", "tablestore_engine.cli.main", server, action, "--json", *words]
    done = subprocess.run(
        [*command, "--data-dir", str(folder / server)], stdout=subprocess.PIPE, text=True, check=False
    )
    if done.returncode != 0:
        raise FixRequest(
            "TS1868",
            f"tablestore {server} {action} failed",
            why="the lines above say why",
            fix="run the demo without --warehouse s3 and --cluster",
        )
    return done.stdout
