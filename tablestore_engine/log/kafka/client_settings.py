"""Settings of the clients of Kafka and of a schema registry, which no table names: from the profile, the environment,
or an explicit flag.

Spelling   Java's names are taken too; each source is translated by itself (log/kafka/client_translation.py), so that a
           later one wins under whatever name.
Order      profile < file of the environment < brokers of the environment < what the caller says (a flag, an argument).
INVARIANT  a secret comes by a file or the profile: no option and no variable of ours holds one.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from functools import cached_property
from pathlib import Path

from tablestore_engine.errors import FixRequest
from tablestore_engine.log.kafka.client_translation import translate_settings

KAFKA_ENV = "TABLESTORE_KAFKA"
KAFKA_CONFIG_ENV = "TABLESTORE_KAFKA_CONFIG"
BROKERS = "kafka.bootstrap.servers"
_PREFIX = "kafka."
_OTHER_PREFIX = "schema.registry."
_BYTES_MAX = 1 << 20


def client_settings(
    environ: Mapping[str, str],
    *,
    profile: Mapping[str, str] | None = None,
    said: Mapping[str, str] | None = None,
) -> dict[str, str]:
    """Keys with the prefix `kafka.` or `schema.registry.`, as the clients have them.

    Raises FixRequest TS1097, TS1098, TS1754-TS1757.
    """
    file, brokers = environ.get(KAFKA_CONFIG_ENV), environ.get(KAFKA_ENV)
    from_file = read_settings(file, by=KAFKA_CONFIG_ENV) if file else {}
    sources = (
        ("`log:` of the profile", profile or {}),
        (f"the file of {KAFKA_CONFIG_ENV}", from_file),
        (KAFKA_ENV, {BROKERS: brokers} if brokers else {}),
        ("this call (log=, --kafka-config)", said or {}),
    )
    found: dict[str, str] = {}
    for source, settings in sources:
        found |= translate_settings(settings, source)
    return found


class DeferredSettings(Mapping[str, str]):
    """What client_settings gives, read at first use: a profile costs seconds, and few commands need a log."""

    def __init__(self, read: Callable[[], Mapping[str, str]]) -> None:
        self._read = read

    @cached_property
    def _found(self) -> Mapping[str, str]:
        return self._read()

    def __getitem__(self, key: str) -> str:
        return self._found[key]

    def __iter__(self) -> Iterator[str]:
        return iter(self._found)

    def __len__(self) -> int:
        return len(self._found)


def read_settings(name: str, *, by: str) -> dict[str, str]:
    """`key=value` lines, with or without the prefix `kafka.`; those of a registry with theirs; `#` begins a comment.

    `by`: who named the file.

    Raises FixRequest TS1097 (no such file), TS1098 (a line that is no setting; its text is not shown).
    """
    try:
        with Path(name).expanduser().open("rb") as file:
            text = file.read(_BYTES_MAX).decode("utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise FixRequest(
            "TS1097",
            f"the Kafka settings {name} cannot be read",
            why=f"{by} names this file: {error.strerror if isinstance(error, OSError) else 'it is no UTF-8 text'}",
            fix=f"correct {by}; the file has lines like security.protocol=SASL_SSL",
        ) from error
    found = {}
    for number, line in enumerate(text.splitlines(), start=1):
        if not line.strip() or line.lstrip().startswith(("#", "!")):
            continue
        key, equals, value = (part.strip() for part in line.partition("="))
        if not equals or not key or " " in key:
            raise FixRequest(
                "TS1098",
                f"line {number} of the Kafka settings {name} is no setting",
                why="expected key=value; the line is not shown, since it may hold a secret",
                fix="write one setting of the Kafka client per line",
            )
        found[key if key.startswith((_PREFIX, _OTHER_PREFIX)) else _PREFIX + key] = value
    return found
