"""The brokers that the chaos suite attacks: one node or three, between clients and each other ports of ours.

Faults     kill (also two at once) · restart by SIGTERM · freeze by SIGSTOP · cut off from the others · replace: killed,
           its disk is lost, it begins empty · rolling restart of all
Whom       the leader of a topic, the coordinator of a third of all transactions, or any
INVARIANT  a disk is lost only when every replica is in sync: rows that one disk alone has cannot survive it.
INVARIANT  behind `calm` every node runs, reaches the others, and no connection of a client is disturbed.
"""

from __future__ import annotations

import os
import random
import signal
import time
from collections import Counter
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, field
from enum import StrEnum
from pathlib import Path

from confluent_kafka import KafkaException

from integration_tests.chaos.links import Links
from integration_tests.chaos.proxy import Fault, Proxy, Weather
from integration_tests.kafka.nodes import Nodes
from tablestore_engine.devservers.broker_properties import Advertised, Ports
from tablestore_engine.devservers.kafka_broker import start_broker, stop_broker
from tablestore_engine.errors import RetryError
from tablestore_engine.log.kafka import transaction_state
from tablestore_engine.runtime.server_process import free_port

_IN_SYNC_SECONDS = 20.0
_AWAY_SECONDS = 1.0  # of a node that a writer has killed


class NodeFault(StrEnum):
    """Of three nodes."""

    KILL = "node killed"
    KILL_TWO = "two nodes killed"
    RESTART = "node restarted"
    FREEZE = "node frozen"
    CUT_OFF = "node cut off from the others"
    REPLACE = "node replaced"
    ROLLING = "rolling restart"


class Whom(StrEnum):
    """Which node."""

    LEADER = "leader"
    COORDINATOR = "coordinator"
    ANY = "any"


@dataclass(frozen=True)
class NodeStrike:
    """`after` so many seconds of a wave, for `seconds`."""

    after: float
    fault: NodeFault
    whom: Whom
    seconds: float


@dataclass
class Brokers:
    """`folder`: their data; `root`: where attackers find their process ids."""

    folder: Path
    root: Path
    count: int
    faults: Counter[str]
    proxies: list[Proxy] = field(default_factory=list)
    ports: list[Ports] = field(default_factory=list)
    _pids: dict[int, int] = field(default_factory=dict)
    _back_at: float | None = None
    _frozen: set[int] = field(default_factory=set)

    def __post_init__(self) -> None:
        """Ports are chosen once: what stands between has to know them."""
        self._links = Links(lambda: self._pids)
        for number in range(1, self.count + 1):
            proxy, client, controller, internal = Proxy(), free_port(), free_port(), free_port()
            proxy.target = client
            between = (self._links.add(number, port) for port in (internal, controller))
            told = Advertised(proxy.port, *between) if self.count > 1 else Advertised(client=proxy.port)
            self.proxies.append(proxy)
            self.ports.append(Ports(client, controller, internal, told))

    @property
    def url(self) -> str:
        """For clients, by the proxies."""
        return ",".join(f"127.0.0.1:{proxy.port}" for proxy in self.proxies)

    @property
    def nodes(self) -> Nodes:
        """For questions, past the proxies."""
        return Nodes(self.folder)

    def start(self, say: Callable[[str], None] = lambda _: None) -> None:
        """Those that do not run, on the same data."""
        self._thaw()
        found = start_broker(self.folder, brokers=self.count, ports=self.ports, say=say)
        self._pids = {node.number: node.pid for node in found.nodes if node.pid is not None}
        self._back_at = None
        (self.root / "broker.pid").write_text(" ".join(map(str, self._pids.values())))

    def kill(self, number: int = 1) -> None:
        """Now."""
        with suppress(ProcessLookupError):
            os.kill(self._pids[number], signal.SIGKILL)

    def find_dead(self) -> bool:
        """Whether one is dead, whoever killed it: they are our children. It comes back a moment later."""
        for number, pid in list(self._pids.items()):
            with suppress(ChildProcessError):
                if os.waitpid(pid, os.WNOHANG)[0] == 0:
                    continue
            del self._pids[number]
            self.faults["broker killed"] += 1
            if self._back_at is None:
                self._back_at = time.monotonic() + (_AWAY_SECONDS if self.count > 1 else 0)
        return self._back_at is not None

    def back_at(self) -> float:
        """When what is away comes back; 0 when all are there."""
        return self._back_at or 0.0

    def is_due(self) -> bool:
        """Whether what is away is to come back."""
        return self._back_at is not None and time.monotonic() >= self._back_at

    def come_back(self) -> None:
        """Dead and frozen ones, and who was cut off."""
        self._links.rejoin()
        self.start()

    def strike(self, strike: NodeStrike, topic: str, chance: random.Random) -> None:
        """`topic`: whose leader may be hit."""
        number = self._find(strike.whom, topic, chance) or chance.randint(1, self.count)
        if number not in self._pids:
            return
        if strike.fault is NodeFault.REPLACE and not self._await_in_sync():
            return
        self.faults[strike.fault] += 1
        self.faults[f"{strike.whom} hit"] += 1
        self._back_at = time.monotonic() + strike.seconds
        if strike.fault is NodeFault.CUT_OFF:
            self._links.cut_off(number)
        elif strike.fault is NodeFault.FREEZE:
            self._frozen.add(number)
            os.kill(self._pids[number], signal.SIGSTOP)
        elif strike.fault is NodeFault.ROLLING:
            for one in list(self._pids):
                self._restart(one)
                self.start()
        elif strike.fault is NodeFault.RESTART:
            self._restart(number)
        elif strike.fault is NodeFault.REPLACE:
            self._forget(number)
            self.nodes.lose(number)
        else:
            self.kill(number)
            other = number % self.count + 1
            if strike.fault is NodeFault.KILL_TWO and other in self._pids:
                self.kill(other)

    def _find(self, whom: Whom, topic: str, chance: random.Random) -> int | None:
        """None where it is not known now: then any."""
        with suppress(KafkaException):
            if whom is Whom.LEADER:
                return self.nodes.find_leader(topic)
            if whom is Whom.COORDINATOR:
                return self.nodes.find_leader(transaction_state.TOPIC, chance.randrange(self.count))
        return None

    def _await_in_sync(self) -> bool:
        until = time.monotonic() + _IN_SYNC_SECONDS
        while time.monotonic() < until:
            with suppress(KafkaException):
                if len(self._pids) == self.count and not self.nodes.lagging():
                    return True
            time.sleep(0.2)
        return False

    def _restart(self, number: int) -> None:
        pid = self._pids[number]
        self._forget(number)
        try:
            stop_broker(self.folder, node=number)
        except (
            RetryError
        ):  # it waits for replicas to take over what it leads: whoever restarts it has no patience
            self.faults["node killed that did not stop"] += 1
            os.kill(pid, signal.SIGKILL)
        with suppress(ChildProcessError):
            os.waitpid(pid, 0)

    def _forget(self, number: int) -> None:
        """It is going to end by us: it does not count as killed."""
        del self._pids[number]

    def _thaw(self) -> None:
        for number in self._frozen & self._pids.keys():
            with suppress(ProcessLookupError):
                os.kill(self._pids[number], signal.SIGCONT)
        self._frozen.clear()

    def disturb(self, chance: random.Random, rate: float, faults: tuple[Fault, ...]) -> None:
        """Bad weather between clients and every node."""
        for proxy in self.proxies:
            proxy.disturb(Weather(random.Random(chance.random()), rate, faults))

    def cut_all(self) -> None:
        """Every connection of clients that is open now is lost."""
        for proxy in self.proxies:
            proxy.cut_all()

    def calm(self) -> None:
        """No fault is left over."""
        self._links.rejoin()
        self._thaw()
        for proxy in self.proxies:
            proxy.calm()
        if self.find_dead() or len(self._pids) < self.count:
            self.start()

    def counts(self) -> Counter[str]:
        """Faults of the network, by name."""
        return sum((proxy.counts for proxy in self.proxies), Counter())

    def requests(self) -> Counter[str]:
        """What they hit."""
        return sum((proxy.requests for proxy in self.proxies), Counter())

    def close(self) -> None:
        """All of them."""
        self._thaw()
        stop_broker(self.folder)
        for proxy in self.proxies:
            proxy.close()
        self._links.close()
