"""The network between the nodes of a broker: what they send each other goes through ports of ours, node by node.

Cut off    a node is out of reach of the others, and they of it, in both directions; clients reach all of them. Its
           connections are lost, new ones are closed at once
Who        a connection's owner is found by its socket's inode among the open files of each node's process (/proc)
INVARIANT  bytes are never changed or repeated.
"""

from __future__ import annotations

import asyncio
import contextlib
import threading
from collections.abc import Callable, Collection, Coroutine, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeVar

_T = TypeVar("_T")
_HOST = "127.0.0.1"
_CHUNK = 65_536
_REFUSED_SECONDS = 0.3


@dataclass(eq=False)
class _Connection:
    port: int
    target: int
    client: asyncio.StreamWriter
    broker: asyncio.StreamWriter

    def cut(self) -> None:
        """Both sides lose it."""
        for side in (self.client, self.broker):
            side.transport.abort()


class Links:
    """`pids`: {node: its process} at this moment. Runs in a thread with a loop of its own."""

    def __init__(self, pids: Callable[[], Mapping[int, int]]) -> None:
        self._pids = pids
        self._away: int | None = None
        self._open: set[_Connection] = set()
        self._servers: list[asyncio.Server] = []
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._loop.run_forever, name="links", daemon=True)
        self._thread.start()

    def add(self, node: int, port: int) -> int:
        """The port that leads to this port of a node."""
        return self._do(self._listen(node, port))

    def cut_off(self, node: int) -> None:
        """From the others, until `rejoin`."""
        self._do(self._cut_off(node))

    def rejoin(self) -> None:
        """Everybody reaches everybody."""
        self._do(self._rejoin())

    def close(self) -> None:
        """Stop the thread."""
        self._do(self._stop())
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join()
        self._loop.close()

    def _do(self, work: Coroutine[Any, Any, _T]) -> _T:
        return asyncio.run_coroutine_threadsafe(work, self._loop).result(60)

    async def _listen(self, node: int, port: int) -> int:
        async def serve(reader: asyncio.StreamReader, client: asyncio.StreamWriter) -> None:
            await self._serve(node, port, reader, client)

        server = await asyncio.start_server(serve, _HOST, 0)
        self._servers.append(server)
        return int(server.sockets[0].getsockname()[1])

    async def _cut_off(self, node: int) -> None:
        self._away = node
        connections = list(self._open)
        owners = await self._find_owners({one.port for one in connections})
        for connection in connections:
            if self._is_cut(owners.get(connection.port), connection.target):
                connection.cut()

    async def _rejoin(self) -> None:
        self._away = None

    async def _find_owners(self, ports: Collection[int]) -> Mapping[int, int]:
        """{port: node}; in a thread, for on a busy machine it takes a while."""
        return await self._loop.run_in_executor(None, find_owners, ports, self._pids())

    async def _stop(self) -> None:
        for server in self._servers:
            server.close()
        for connection in list(self._open):
            connection.cut()
        await asyncio.sleep(0)

    def _is_cut(self, source: int | None, target: int) -> bool:
        """What a node sends itself stays within it."""
        return self._away is not None and source != target and self._away in (source, target)

    async def _serve(
        self, node: int, port: int, reader: asyncio.StreamReader, client: asyncio.StreamWriter
    ) -> None:
        source = client.get_extra_info("peername")[1]
        if self._away is not None:
            await asyncio.sleep(_REFUSED_SECONDS)  # who is refused comes again at once
            owners = await self._find_owners([source])
            if self._is_cut(owners.get(source), node):
                client.transport.abort()
                return
        try:
            answers, broker = await asyncio.open_connection(_HOST, port)
        except OSError:
            client.transport.abort()
            return
        connection = _Connection(source, node, client, broker)
        self._open.add(connection)
        pumps = [
            self._loop.create_task(_pump(reader, broker)),
            self._loop.create_task(_pump(answers, client)),
        ]
        await asyncio.wait(pumps, return_when=asyncio.FIRST_COMPLETED)
        self._open.discard(connection)
        connection.cut()
        await asyncio.wait(pumps)


async def _pump(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    with contextlib.suppress(OSError):
        while chunk := await reader.read(_CHUNK):
            writer.write(chunk)
            await writer.drain()


def find_owners(ports: Collection[int], pids: Mapping[int, int]) -> Mapping[int, int]:
    """{local port: the node whose process has a connection from it}."""
    inodes = {f"socket:[{inode}]": port for port, inode in _read_sockets() if port in ports}
    found: dict[int, int] = {}
    for node, pid in pids.items():
        for file in _list_files(pid):
            with contextlib.suppress(OSError):
                port = inodes.get(str(file.readlink()))
                if port is not None:
                    found[port] = node
    return found


def _list_files(pid: int) -> list[Path]:
    with contextlib.suppress(OSError):  # it ends at this moment
        return list(Path(f"/proc/{pid}/fd").iterdir())
    return []


def _read_sockets() -> Iterator[tuple[int, str]]:
    """(local port, inode)."""
    for table in ("tcp", "tcp6"):
        for line in Path(f"/proc/net/{table}").read_text().splitlines()[1:]:
            fields = line.split()
            yield int(fields[1].rpartition(":")[2], 16), fields[9]
