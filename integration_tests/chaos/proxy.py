"""A network that cannot be trusted, between Kafka clients and one broker on loopback.

Faults     delay         the request waits
           cut-request   half of it arrives, then both sides lose the connection
           cut-answer    the broker did it, half of the answer arrives, then the connection is gone
           drop          it never arrives; the connection stays silent, then it is gone
           late          the client loses the connection at once, the broker gets the request some time later
           twin          its answer is lost, and it comes again over a connection opened anew: with the client's own
                         repetition the broker gets it three times
           refuse        a new connection is closed at once
Steps      1 requests are read as frames, whose first number says what they ask  2 the weather gives each a fault or
           none; what decides over a transaction is hit most  3 answers come in the order of requests
INVARIANT  bytes of one connection are never reordered, changed or repeated within it: TCP does not do that.
INVARIANT  behind `calm` nothing that was held back is under way any more: it is delivered or lost.
"""

from __future__ import annotations

import asyncio
import contextlib
import random
import struct
import threading
from collections import Counter, deque
from collections.abc import Coroutine
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any, TypeVar

_T = TypeVar("_T")
_HOST = "127.0.0.1"
_FRAME, _ASKS = struct.Struct(">i"), struct.Struct(">h")
_ANSWER_SECONDS = 5.0
# what makes or breaks a log
DECIDING = {0: "Produce", 22: "InitProducerId", 24: "AddPartitionsToTxn", 26: "EndTxn"}


class Fault(StrEnum):
    """Of one request."""

    DELAY = "delay"
    CUT_REQUEST = "cut-request"
    CUT_ANSWER = "cut-answer"
    DROP = "drop"
    LATE = "late"
    TWIN = "twin"
    REFUSE = "refuse"


OF_REQUESTS = tuple(one for one in Fault if one is not Fault.REFUSE)


@dataclass
class Weather:
    """`rate`: of a deciding request to be hit; others are hit ten times less."""

    chance: random.Random
    rate: float
    faults: tuple[Fault, ...] = OF_REQUESTS

    def strike(self, asks: int) -> Fault | None:
        """The fault of a request that asks for this."""
        rate = self.rate if asks in DECIDING else self.rate / 10
        return self.chance.choice(self.faults) if self.faults and self.chance.random() < rate else None

    def refuses(self) -> bool:
        """Whether a new connection is closed."""
        return self.chance.random() < self.rate / 4

    def seconds(self, longest: float) -> float:
        """How long something takes."""
        return self.chance.uniform(0.005, longest)


@dataclass(eq=False)
class _Connection:
    """One of a client; `asked` are faults of requests whose answers are to come."""

    client: asyncio.StreamWriter
    broker: asyncio.StreamWriter
    asked: deque[tuple[Fault | None, bytes]] = field(default_factory=deque)
    is_cut: bool = False

    def cut(self) -> None:
        """Both sides lose it."""
        self.is_cut = True
        for side in (self.client, self.broker):
            side.transport.abort()


class Proxy:
    """Runs in a thread with a loop of its own; `counts` says what happened, `requests` to what."""

    def __init__(self) -> None:
        """Listens at once."""
        self.target: int | None = None
        self.counts: Counter[str] = Counter()
        self.requests: Counter[str] = Counter()
        self._weather: Weather | None = None
        self._open: set[_Connection] = set()
        self._held: set[asyncio.Task[None]] = set()
        self._hurry = asyncio.Event()
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._loop.run_forever, name="proxy", daemon=True)
        self._thread.start()
        self.port: int = self._do(self._listen())

    def disturb(self, weather: Weather) -> None:
        """Faults from here on."""
        self._do(self._set(weather))

    def calm(self) -> None:
        """No fault any more; open connections go, so that a silent one holds nobody up."""
        self._do(self._set(None))

    def cut_all(self) -> None:
        """Every connection that is open now is lost."""
        self._do(self._cut_all())

    def close(self) -> None:
        """Stop the thread."""
        self.calm()
        self._do(self._stop())
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join()
        self._loop.close()

    def _do(self, work: Coroutine[Any, Any, _T]) -> _T:
        return asyncio.run_coroutine_threadsafe(work, self._loop).result(60)

    async def _listen(self) -> int:
        self._server = await asyncio.start_server(self._serve, _HOST, 0)
        return int(self._server.sockets[0].getsockname()[1])

    async def _stop(self) -> None:
        self._server.close()
        await asyncio.sleep(0)

    async def _set(self, weather: Weather | None) -> None:
        self._weather = weather
        if weather is not None:
            return
        self._hurry.set()
        while self._held:
            await asyncio.wait(self._held)
        self._hurry.clear()
        await self._cut_all()

    async def _cut_all(self) -> None:
        for connection in list(self._open):
            connection.cut()

    async def _wait(self, seconds: float) -> None:
        """That long, or until it is calm."""
        with contextlib.suppress(TimeoutError):
            await asyncio.wait_for(self._hurry.wait(), seconds)

    def _hold(self, work: Coroutine[Any, Any, None]) -> None:
        """Something that ends behind its connection."""
        task = self._loop.create_task(work)
        self._held.add(task)
        task.add_done_callback(self._held.discard)

    # one connection ------------------------------------------------------------------------------

    async def _serve(self, reader: asyncio.StreamReader, client: asyncio.StreamWriter) -> None:
        weather = self._weather
        if self.target is None or (weather is not None and weather.refuses()):
            self.counts[Fault.REFUSE] += weather is not None and self.target is not None
            client.transport.abort()
            return
        try:
            answers, broker = await asyncio.open_connection(_HOST, self.target)
        except OSError:
            client.transport.abort()
            return
        connection = _Connection(client, broker)
        self._open.add(connection)
        pumps = [
            self._loop.create_task(self._pump_requests(reader, connection)),
            self._loop.create_task(self._pump_answers(answers, connection)),
        ]
        await asyncio.wait(pumps, return_when=asyncio.FIRST_COMPLETED)
        self._open.discard(connection)
        if not connection.is_cut:
            connection.cut()
        await asyncio.wait(pumps)

    async def _pump_requests(self, reader: asyncio.StreamReader, connection: _Connection) -> None:
        with contextlib.suppress(OSError, asyncio.IncompleteReadError):
            while not connection.is_cut:
                frame = await _read_frame(reader)
                weather = self._weather
                asks = int(_ASKS.unpack_from(frame, 4)[0])
                fault = None if weather is None else weather.strike(asks)
                if fault is not None:
                    self.counts[fault] += 1
                    self.requests[DECIDING.get(asks, "other requests")] += 1
                if not await self._forward(frame, fault, connection):
                    return

    async def _forward(self, frame: bytes, fault: Fault | None, connection: _Connection) -> bool:
        """Send a request on, with what happens to it; False when no more will come."""
        weather = self._weather
        assert weather is not None or fault is None
        if fault is Fault.DELAY and weather is not None:
            await self._wait(weather.seconds(0.3))
        elif fault is Fault.CUT_REQUEST:
            connection.broker.write(frame[: max(5, len(frame) // 2)])
            await connection.broker.drain()
            return False
        elif fault is Fault.DROP and weather is not None:
            await self._wait(weather.seconds(2.0))
            return False
        elif fault is Fault.LATE and weather is not None:
            self._hold(self._again(frame, weather.seconds(1.5)))
            return False
        connection.asked.append((fault, frame))
        connection.broker.write(frame)
        await connection.broker.drain()
        return True

    async def _pump_answers(self, reader: asyncio.StreamReader, connection: _Connection) -> None:
        with contextlib.suppress(OSError, asyncio.IncompleteReadError):
            while not connection.is_cut:
                answer = await _read_frame(reader)
                fault, frame = connection.asked.popleft() if connection.asked else (None, b"")
                if fault is Fault.CUT_ANSWER:
                    connection.client.write(answer[: len(answer) // 2])
                    await connection.client.drain()
                    return
                if fault is Fault.TWIN:
                    self._hold(self._again(frame, 0))
                    return
                connection.client.write(answer)
                await connection.client.drain()

    async def _again(self, frame: bytes, seconds: float) -> None:
        """A request over a connection of its own; nobody hears the answer."""
        if seconds:
            await self._wait(seconds)
        with contextlib.suppress(OSError, asyncio.IncompleteReadError, TimeoutError):
            assert self.target is not None
            reader, broker = await asyncio.open_connection(_HOST, self.target)
            broker.write(frame)
            await asyncio.wait_for(_read_frame(reader), _ANSWER_SECONDS)
            broker.transport.abort()


async def _read_frame(reader: asyncio.StreamReader) -> bytes:
    head = await reader.readexactly(_FRAME.size)
    return head + await reader.readexactly(_FRAME.unpack(head)[0])
