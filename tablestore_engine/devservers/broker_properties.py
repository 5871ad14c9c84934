"""server.properties of a node of the development broker, as text.

Plain      one listener without log-in
Internal   of several nodes, and where clients are sent through a port of somebody else (a tunnel, a proxy), nodes have
           a listener of their own to talk to each other
Secure     CLIENT: SASL/SCRAM-SHA-512 over TLS, for everybody · INTERNAL and CONTROLLER: TLS with the broker's own
           certificate, which is a superuser: by it nodes talk to each other, and users are made
Several    a row is acknowledged when two of three nodes have it (min.insync.replicas); a replica that lags never
           becomes the leader
INVARIANT  every listener is bound to 127.0.0.1.
INVARIANT  secure: who has no rights may do nothing (allow.everyone.if.no.acl.found=false).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from tablestore_engine.devservers.broker_certificates import BROKER_PRINCIPAL, Certificates

ADMIN_USER = "admin"
# a record for monitors every half a second, Kafka's default, is a third of what an idle broker computes;
# a session of 3 s: after a SIGKILL the default 9 s would delay the next start by that much
_COMMON = """process.roles=broker,controller
node.id={number}
controller.quorum.bootstrap.servers={controllers}
controller.listener.names=CONTROLLER
log.dirs={data}
broker.session.timeout.ms=3000
broker.heartbeat.interval.ms=500
offsets.topic.num.partitions={nodes}
offsets.topic.replication.factor={nodes}
transaction.state.log.num.partitions={nodes}
transaction.state.log.replication.factor={nodes}
transaction.state.log.min.isr={in_sync}
transaction.abort.timed.out.transaction.cleanup.interval.ms=1000
share.coordinator.state.topic.replication.factor={nodes}
share.coordinator.state.topic.min.isr={in_sync}
group.initial.rebalance.delay.ms=0
metadata.max.idle.interval.ms=5000
auto.create.topics.enable=false
log.cleaner.dedupe.buffer.size=16777216
"""
# a follower that cannot be reached leaves the in-sync replicas after 5 s: writers wait that long, by default 30 s
_SEVERAL = """default.replication.factor={nodes}
min.insync.replicas={in_sync}
unclean.leader.election.enable=false
replica.lag.time.max.ms=5000
controller.quorum.auto.join.enable=true
"""
_PLAIN = """listeners=PLAINTEXT://127.0.0.1:{client},CONTROLLER://127.0.0.1:{controller}
advertised.listeners=PLAINTEXT://127.0.0.1:{client}
listener.security.protocol.map=CONTROLLER:PLAINTEXT,PLAINTEXT:PLAINTEXT
inter.broker.listener.name=PLAINTEXT
"""
_INTERNAL = """listeners=CLIENT://127.0.0.1:{client},INTERNAL://127.0.0.1:{internal},CONTROLLER://127.0.0.1:{controller}
advertised.listeners=CLIENT://127.0.0.1:{told.client},INTERNAL://127.0.0.1:{told.internal},CONTROLLER://127.0.0.1:{told.controller}
listener.security.protocol.map=CONTROLLER:PLAINTEXT,INTERNAL:PLAINTEXT,CLIENT:PLAINTEXT
inter.broker.listener.name=INTERNAL
"""
_SECURE = """listeners=CLIENT://127.0.0.1:{client},INTERNAL://127.0.0.1:{internal},CONTROLLER://127.0.0.1:{controller}
advertised.listeners=CLIENT://127.0.0.1:{told.client},INTERNAL://127.0.0.1:{told.internal},CONTROLLER://127.0.0.1:{told.controller}
listener.security.protocol.map=CONTROLLER:SSL,INTERNAL:SSL,CLIENT:SASL_SSL
inter.broker.listener.name=INTERNAL
listener.name.internal.ssl.client.auth=required
listener.name.controller.ssl.client.auth=required
listener.name.client.sasl.enabled.mechanisms=SCRAM-SHA-512
listener.name.client.scram-sha-512.sasl.jaas.config=\
org.apache.kafka.common.security.scram.ScramLoginModule required;
ssl.keystore.type=PKCS12
ssl.keystore.location={store}
ssl.keystore.password={password}
ssl.key.password={password}
ssl.truststore.type=PEM
ssl.truststore.location={ca}
authorizer.class.name=org.apache.kafka.metadata.authorizer.StandardAuthorizer
allow.everyone.if.no.acl.found=false
super.users=User:{broker};User:{admin}
"""


@dataclass(frozen=True)
class Advertised:
    """Advertised ports, where a proxy stands between; None: the port that the node listens on."""

    client: int | None = None
    internal: int | None = None
    controller: int | None = None


@dataclass(frozen=True)
class Ports:
    """Of one node: where it listens for clients, for controllers and for other nodes."""

    client: int
    controller: int
    internal: int
    advertised: Advertised = Advertised()

    @property
    def told(self) -> Ports:
        """The ports that others use."""
        asked = self.advertised
        return Ports(
            asked.client or self.client, asked.controller or self.controller, asked.internal or self.internal
        )


def server_properties(
    nodes: Sequence[Ports], number: int, data: Path, certificates: Certificates | None
) -> str:
    """The whole file of node `number`, counted from 1, of these; with certificates that of a secure broker."""
    ports, count = nodes[number - 1], len(nodes)
    facts = {"nodes": count, "in_sync": min(2, count)}
    common = _COMMON.format(
        number=number,
        controllers=",".join(f"127.0.0.1:{one.told.controller}" for one in nodes),
        data=data,
        **facts,
    ) + (_SEVERAL.format(**facts) if count > 1 else "")
    listening = {
        "client": ports.client,
        "internal": ports.internal,
        "controller": ports.controller,
        "told": ports.told,
    }
    if certificates is not None:
        return common + _SECURE.format(
            **listening,
            store=certificates.store,
            ca=certificates.ca,
            password=certificates.password(),
            broker=BROKER_PRINCIPAL,
            admin=ADMIN_USER,
        )
    if count > 1 or ports.told.client != ports.client:
        return common + _INTERNAL.format(**listening)
    return common + _PLAIN.format(**listening)
