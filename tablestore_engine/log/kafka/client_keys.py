"""Names of settings that Kafka clients know: librdkafka's, which we hand on, and Java's, which are translated.

CHANGE     which client settings are known
"""

from __future__ import annotations

import difflib
from collections.abc import Mapping
from types import MappingProxyType

SAME_AS: Mapping[str, str] = MappingProxyType(
    {
        # librdkafka's second names
        "metadata.broker.list": "bootstrap.servers",
        "max.in.flight": "max.in.flight.requests.per.connection",
        "queue.buffering.max.ms": "linger.ms",
        "message.send.max.retries": "retries",
        "compression.codec": "compression.type",
        "request.required.acks": "acks",
        "message.timeout.ms": "delivery.timeout.ms",
        "fetch.message.max.bytes": "max.partition.fetch.bytes",
        "sasl.mechanisms": "sasl.mechanism",
        "auto.commit.enable": "enable.auto.commit",
        "sasl.oauthbearer.client.credentials.client.id": "sasl.oauthbearer.client.id",
        "sasl.oauthbearer.client.credentials.client.secret": "sasl.oauthbearer.client.secret",
        # Java's
        "fetch.max.wait.ms": "fetch.wait.max.ms",
        "max.request.size": "message.max.bytes",
        "send.buffer.bytes": "socket.send.buffer.bytes",
        "receive.buffer.bytes": "socket.receive.buffer.bytes",
        "ssl.truststore.certificates": "ssl.ca.pem",
        "ssl.keystore.key": "ssl.key.pem",
        "ssl.keystore.certificate.chain": "ssl.certificate.pem",
    }
)
_OPENSSL = "leave it out: OpenSSL chooses, TLS 1.2 or newer"
_CLASSES = "leave it out: it names Java classes, and the client is librdkafka"
_ENCODED = "leave it out: log.format and log.key.format of the table say how messages are encoded"
_OAUTH = (
    "for OAuth set kafka.sasl.oauthbearer.method=oidc, kafka.sasl.oauthbearer.client.id, .client.secret and "
    ".token.endpoint.url; anything else needs Java classes"
)
_WAITS = "leave it out: the engine waits by itself, as long as brokers may be away"
OF_JAVA: Mapping[str, str] = MappingProxyType(
    {
        "ssl.provider": _OPENSSL,
        "ssl.protocol": _OPENSSL,
        "ssl.enabled.protocols": _OPENSSL,
        "ssl.keymanager.algorithm": _OPENSSL,
        "ssl.trustmanager.algorithm": _OPENSSL,
        "ssl.secure.random.implementation": _OPENSSL,
        "ssl.engine.factory.class": _CLASSES,
        "security.providers": _CLASSES,
        "interceptor.classes": _CLASSES,
        "metric.reporters": _CLASSES,
        "metrics.num.samples": _CLASSES,
        "metrics.sample.window.ms": _CLASSES,
        "metrics.recording.level": _CLASSES,
        "auto.include.jmx.reporter": _CLASSES,
        "config.providers": "leave it out: write the value itself, by env_var() in a profile",
        "sasl.client.callback.handler.class": _OAUTH,
        "sasl.login.callback.handler.class": _OAUTH,
        "sasl.login.class": _OAUTH,
        "sasl.oauthbearer.jwks.endpoint.url": _OAUTH,
        "key.serializer": _ENCODED,
        "value.serializer": _ENCODED,
        "key.deserializer": _ENCODED,
        "value.deserializer": _ENCODED,
        "partitioner.class": "leave it out: a partition of the topic is a bucket of the table",
        "max.block.ms": _WAITS,
        "socket.connection.setup.timeout.max.ms": "write kafka.socket.connection.setup.timeout.ms",
        "exclude.internal.topics": "leave it out: a table reads its own two topics",
        "transaction.two.phase.commit.enable": "leave it out: transactions are the engine's",
        "buffer.memory": "write kafka.queue.buffering.max.kbytes, in KiB",
        "ssl.truststore.password": "leave it out: a trust store in PEM has none; export others with keytool "
        "-exportcert -rfc, and write kafka.ssl.ca.location",
    }
)
_NAMES = """
    acks allow.auto.create.topics api.version.fallback.ms api.version.request api.version.request.timeout.ms
    auto.commit.interval.ms auto.offset.reset batch.num.messages batch.size bootstrap.servers broker.address.family
    broker.address.ttl broker.version.fallback check.crcs client.dns.lookup client.id client.rack compression.level
    compression.type connections.max.idle.ms coordinator.query.interval.ms debug delivery.report.only.error
    delivery.timeout.ms enable.auto.commit enable.auto.offset.store enable.gapless.guarantee enable.idempotence
    enable.metrics.push enable.partition.eof enable.random.seed enable.sasl.oauthbearer.unsecure.jwt
    enable.ssl.certificate.verification fetch.error.backoff.ms fetch.max.bytes fetch.min.bytes
    fetch.queue.backoff.ms fetch.wait.max.ms group.id group.instance.id group.protocol group.protocol.type
    group.remote.assignor heartbeat.interval.ms https.ca.location https.ca.pem isolation.level linger.ms
    log.connection.close log.thread.name log_level max.in.flight.requests.per.connection max.partition.fetch.bytes
    max.poll.interval.ms message.copy.max.bytes message.max.bytes metadata.max.age.ms
    metadata.recovery.rebootstrap.trigger.ms metadata.recovery.strategy partition.assignment.strategy partitioner
    plugin.library.paths queue.buffering.backpressure.threshold queue.buffering.max.kbytes
    queue.buffering.max.messages queued.max.messages.kbytes queued.min.messages queuing.strategy
    receive.message.max.bytes reconnect.backoff.jitter.ms reconnect.backoff.max.ms reconnect.backoff.ms
    request.timeout.ms retries retry.backoff.max.ms retry.backoff.ms sasl.kerberos.keytab sasl.kerberos.kinit.cmd
    sasl.kerberos.min.time.before.relogin sasl.kerberos.principal sasl.kerberos.service.name sasl.mechanism
    sasl.oauthbearer.assertion.algorithm sasl.oauthbearer.assertion.claim.aud
    sasl.oauthbearer.assertion.claim.exp.seconds sasl.oauthbearer.assertion.claim.iss
    sasl.oauthbearer.assertion.claim.jti.include sasl.oauthbearer.assertion.claim.nbf.seconds
    sasl.oauthbearer.assertion.claim.sub sasl.oauthbearer.assertion.file
    sasl.oauthbearer.assertion.jwt.template.file sasl.oauthbearer.assertion.private.key.file
    sasl.oauthbearer.assertion.private.key.passphrase sasl.oauthbearer.assertion.private.key.pem
    sasl.oauthbearer.client.id sasl.oauthbearer.client.secret sasl.oauthbearer.config sasl.oauthbearer.extensions
    sasl.oauthbearer.grant.type sasl.oauthbearer.metadata.authentication.type sasl.oauthbearer.method
    sasl.oauthbearer.scope sasl.oauthbearer.sub.claim.name sasl.oauthbearer.token.endpoint.url sasl.password
    sasl.username security.protocol session.timeout.ms socket.blocking.max.ms socket.connection.setup.timeout.ms
    socket.keepalive.enable socket.max.fails socket.nagle.disable socket.receive.buffer.bytes
    socket.send.buffer.bytes socket.timeout.ms ssl.ca.certificate.stores ssl.ca.location ssl.ca.pem
    ssl.certificate.location ssl.certificate.pem ssl.cipher.suites ssl.crl.location ssl.curves.list
    ssl.endpoint.identification.algorithm ssl.engine.id ssl.engine.location ssl.key.location ssl.key.password
    ssl.key.pem ssl.keystore.location ssl.keystore.password ssl.providers ssl.sigalgs.list statistics.interval.ms
    sticky.partitioning.linger.ms topic.blacklist topic.metadata.propagation.max.ms topic.metadata.refresh.fast.cnt
    topic.metadata.refresh.fast.interval.ms topic.metadata.refresh.interval.ms topic.metadata.refresh.sparse
    transaction.timeout.ms transactional.id
"""
KNOWN = frozenset(_NAMES.split())
ANSWER_MS = (
    "default.api.timeout.ms"  # Java's name; the engine keeps to it by itself, librdkafka has no such setting
)
OF_ENGINE = frozenset({ANSWER_MS})
_STORES = ("ssl.truststore.location", "ssl.truststore.type", "ssl.keystore.type", "sasl.jaas.config")
_ALL = sorted({*KNOWN, *OF_ENGINE, *SAME_AS, *OF_JAVA, *_STORES})


def is_client_key(key: str) -> bool:
    return key in _ALL


def find_nearest(key: str) -> str:
    """As people misspell: by letters, whatever the case and whether words are parted by dots."""
    plain = key.lower().replace("_", ".").replace("-", ".")
    return difflib.get_close_matches(plain, _ALL, n=1, cutoff=0.0)[0]
