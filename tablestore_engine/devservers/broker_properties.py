"""server.properties of the development broker, as text.

Plain      one listener without log-in
Advertised where clients are sent through a port of somebody else (a tunnel, a proxy), the broker has a listener of its
           own to talk to itself
Secure     CLIENT: SASL/SCRAM-SHA-512 over TLS, for everybody · INTERNAL and CONTROLLER: TLS with the broker's own
           certificate, which is a superuser: by it the broker talks to itself, and users are made
INVARIANT  every listener is bound to 127.0.0.1.
INVARIANT  secure: who has no rights may do nothing (allow.everyone.if.no.acl.found=false).
"""

from __future__ import annotations

from dataclasses import asdict, dataclass
from pathlib import Path

from tablestore_engine.devservers.broker_certificates import BROKER_PRINCIPAL, Certificates

ADMIN_USER = "admin"
# a session of 3 s: after a SIGKILL the default 9 s would delay the next start by that much
_COMMON = """process.roles=broker,controller
node.id=1
controller.quorum.bootstrap.servers=127.0.0.1:{controller}
controller.listener.names=CONTROLLER
log.dirs={data}
broker.session.timeout.ms=3000
broker.heartbeat.interval.ms=500
offsets.topic.num.partitions=1
offsets.topic.replication.factor=1
transaction.state.log.num.partitions=1
transaction.state.log.replication.factor=1
transaction.state.log.min.isr=1
transaction.abort.timed.out.transaction.cleanup.interval.ms=1000
share.coordinator.state.topic.replication.factor=1
share.coordinator.state.topic.min.isr=1
group.initial.rebalance.delay.ms=0
auto.create.topics.enable=false
log.cleaner.dedupe.buffer.size=16777216
"""
_PLAIN = """listeners=PLAINTEXT://127.0.0.1:{client},CONTROLLER://127.0.0.1:{controller}
advertised.listeners=PLAINTEXT://127.0.0.1:{client}
listener.security.protocol.map=CONTROLLER:PLAINTEXT,PLAINTEXT:PLAINTEXT
inter.broker.listener.name=PLAINTEXT
"""
_ADVERTISED = """listeners=CLIENT://127.0.0.1:{client},INTERNAL://127.0.0.1:{internal},CONTROLLER://127.0.0.1:{controller}
advertised.listeners=CLIENT://127.0.0.1:{advertised},INTERNAL://127.0.0.1:{internal}
listener.security.protocol.map=CONTROLLER:PLAINTEXT,INTERNAL:PLAINTEXT,CLIENT:PLAINTEXT
inter.broker.listener.name=INTERNAL
"""
_SECURE = """listeners=CLIENT://127.0.0.1:{client},INTERNAL://127.0.0.1:{internal},CONTROLLER://127.0.0.1:{controller}
advertised.listeners=CLIENT://127.0.0.1:{client},INTERNAL://127.0.0.1:{internal}
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
class Ports:
    """Clients are told `advertised`, `client` when there is none."""

    client: int
    controller: int
    internal: int
    advertised: int | None = None


def server_properties(ports: Ports, data: Path, certificates: Certificates | None) -> str:
    """The whole file; with certificates the secure broker."""
    common = _COMMON.format(controller=ports.controller, data=data)
    if certificates is None and ports.advertised is not None:
        return common + _ADVERTISED.format(**asdict(ports))
    if certificates is None:
        return common + _PLAIN.format(client=ports.client, controller=ports.controller)
    return common + _SECURE.format(
        client=ports.client,
        internal=ports.internal,
        controller=ports.controller,
        store=certificates.store,
        ca=certificates.ca,
        password=certificates.password(),
        broker=BROKER_PRINCIPAL,
        admin=ADMIN_USER,
    )
