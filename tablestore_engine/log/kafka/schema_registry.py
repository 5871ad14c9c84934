"""The schema registry of a log with Avro in it: asked before a commit, told the table's schemas before rows are sent.

CHANGE     the requests to a schema registry
Steps      check     may these schemas be registered: the compatibility that the registry keeps for each subject
           register  each schema under its subject, `<topic>-key` and `<topic>-value`; one that is there already keeps
                     its number, so this is safe to repeat, and the client remembers the answer
Optional   the client comes with the extra `avro` and is imported when a log needs it: what it brings (an HTTP client,
           OAuth, cryptography) costs each start a tenth of a second and few tables use it (decision 0036)
INVARIANT  no schema is registered for a snapshot that does not exist yet, and none is ever deleted.
INVARIANT  what the registry says comes without secrets.
"""

from __future__ import annotations

import importlib
import importlib.util
from collections.abc import Callable
from types import TracebackType
from typing import Any, TypeVar

from tablestore_engine.errors import FixRequest, RetryError, TablestoreError
from tablestore_engine.log.avro_schema import AvroSchemas, SchemaIds, subjects
from tablestore_engine.log.kafka.client_config import REGISTRY_PREFIX, ClientConfig

T = TypeVar("T")
_CLIENT = "confluent_kafka.schema_registry"
_HTTP = ("httpx2", "httpx")  # whichever the client's version uses
_NUMBERS = {"timeout", "max.retries", "retries.wait.ms", "retries.max.wait.ms", "cache.capacity"}
_LOGIN = (401, 403)
_INCOMPATIBLE = 409
_UNKNOWN = 404
_PASSING = (408, 429)
_SERVER = 500


class SchemaRegistry:
    """Not thread-safe."""

    def __init__(self, client: ClientConfig) -> None:
        """Asks nothing yet. Raises FixRequest TS1770, TS1771."""
        self._config = client
        self._module, self._transport = _load_client()
        said: dict[str, object] = {"timeout": int(client.timeout_s), "max.retries": 1}
        try:
            said.update({key: _number(key, text) for key, text in client.registry.items()})
            self._client = self._module.SchemaRegistryClient(said)
        except (ValueError, TypeError, OSError) as error:
            raise FixRequest(
                "TS1770",
                f"the settings of the schema registry for {client.subject} are not accepted",
                why=client.redact(str(error)),
                fix=f"correct {REGISTRY_PREFIX}* in `log:` of the profile, or in the file of TABLESTORE_KAFKA_CONFIG",
            ) from error

    def __enter__(self) -> SchemaRegistry:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def close(self) -> None:
        self._client.close()

    def check_reachable(self) -> None:
        """Raises as `check`."""
        self._ask("asking it", self._client.get_schema_types)

    def check(self, schemas: AvroSchemas, topic: str) -> None:
        """Whether a topic's schemas may be registered. Raises RetryError TS1767, FixRequest TS1768, TS1769, TS1772."""
        for subject, text in subjects(schemas, topic).items():
            if not self._is_compatible(subject, text):
                raise self._incompatible(subject, "it is not compatible with the versions that are there")

    def register(self, schemas: AvroSchemas, topic: str) -> SchemaIds:
        """The numbers of a topic's schemas. Raises as `check`."""
        ids = {
            subject: self._register_one(subject, text) for subject, text in subjects(schemas, topic).items()
        }
        return SchemaIds(key=ids.get(f"{topic}-key", 0), value=ids.get(f"{topic}-value", 0))

    def _register_one(self, subject: str, text: str) -> int:
        schema = self._schema(text)
        return self._ask(
            f"registering subject {subject}", lambda: int(self._client.register_schema(subject, schema))
        )

    def find_schema(self, number: int) -> str:
        """The text of a schema. Raises ValueError for an unknown one, and as `check`."""

        def ask() -> str:
            try:
                return str(self._client.get_schema(number).schema_str)
            except self._module.SchemaRegistryError as error:
                if error.http_status_code != _UNKNOWN:
                    raise
                return ""

        text = self._ask(f"asking for schema {number}", ask)
        if not text:
            raise ValueError(f"the schema registry has no schema {number}")
        return text

    def _schema(self, text: str) -> Any:  # noqa: ANN401 - the client's own class
        return self._module.Schema(text, "AVRO")

    def _is_compatible(self, subject: str, text: str) -> bool:
        def ask() -> bool:
            try:
                return bool(self._client.test_compatibility_all_versions(subject, self._schema(text)))
            except self._module.SchemaRegistryError as error:
                if error.http_status_code != _UNKNOWN:
                    raise
                return True  # no such subject yet

        return self._ask(f"checking subject {subject}", ask)

    def _ask(self, doing: str, work: Callable[[], T]) -> T:
        try:
            return work()
        except self._module.SchemaRegistryError as error:
            raise self._refused(doing, error.http_status_code, str(error)) from error
        except self._transport as error:
            raise self._away(doing, f"{type(error).__name__}: {error}") from error
        except (ValueError, KeyError, TypeError) as error:  # an answer that no registry gives
            raise self._strange(doing, repr(error)) from error

    def _refused(self, doing: str, status: int, text: str) -> TablestoreError:
        if status in _LOGIN:
            return FixRequest(
                "TS1768",
                f"the schema registry refuses the log-in for {self._config.subject}, {doing}",
                why=self._config.redact(text),
                fix=f"correct {REGISTRY_PREFIX}basic.auth.user.info (or bearer.auth.*, ssl.*) in `log:` of the "
                "profile, or the user's rights: read and write of the subjects, read of their compatibility",
            )
        if status == _INCOMPATIBLE:
            return self._incompatible(doing, text)
        if status >= _SERVER or status in _PASSING:
            return self._away(doing, text)
        return self._strange(doing, text)

    def _incompatible(self, doing: str, why: str) -> FixRequest:
        return FixRequest(
            "TS1769",
            f"the schema registry does not take the schema of {self._config.subject} ({doing})",
            why=self._config.redact(why),
            fix="change the columns in a way that it allows (add nullable ones, widen), or set another compatibility "
            "for the subject; of a table that was dropped, delete the subject with its topic",
        )

    def _away(self, doing: str, why: str) -> RetryError:
        return RetryError(
            "TS1767",
            f"the schema registry for {self._config.subject} gave no answer, {doing}",
            why=self._config.redact(f"{self._config.registry.get('url', '')}: {why}"),
            fix=f"start it, or correct {REGISTRY_PREFIX}url in `log:` of the profile, then do this again; a "
            "snapshot that is committed is published later",
        )

    def _strange(self, doing: str, why: str) -> FixRequest:
        return FixRequest(
            "TS1772",
            f"the schema registry for {self._config.subject} gave an answer that is not understood, {doing}",
            why=self._config.redact(why),
            fix=f"see that {REGISTRY_PREFIX}url is the address of a registry with Confluent's interface (of Apicurio "
            "http://HOST:PORT/apis/ccompat/v7)",
        )


def _number(key: str, text: str) -> object:
    return int(text) if key in _NUMBERS else text


def _load_client() -> tuple[Any, tuple[type[Exception], ...]]:
    """Confluent's module, and what it raises for a connection that does not come about. Raises FixRequest TS1771."""
    try:
        module = importlib.import_module(_CLIENT)
    except ImportError as error:
        raise FixRequest(
            "TS1771",
            "a log with Avro needs the client of schema registries",
            why=f"it cannot be imported: {error}",
            fix="pip install 'dbt-tablestore[avro]'",
        ) from error
    found = [importlib.import_module(name) for name in _HTTP if importlib.util.find_spec(name) is not None]
    return module, tuple(kind for http in found for kind in (http.HTTPError, http.InvalidURL))
