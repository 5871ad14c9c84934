"""An ingest put together: source, reader, target."""

from __future__ import annotations

from collections.abc import Callable

from tablestore_engine.ingest.canal_maxwell_ogg import CanalJson, MaxwellJson, OggJson
from tablestore_engine.ingest.change_event import MessageReader
from tablestore_engine.ingest.debezium import DebeziumAvro, DebeziumJson
from tablestore_engine.ingest.file_source import FileSource
from tablestore_engine.ingest.ingest_run import IngestRun, Say
from tablestore_engine.ingest.ingest_spec import ChangeFormat, IngestSpec
from tablestore_engine.ingest.table_sink import TableSink
from tablestore_engine.log.avro_decode import AvroReader, FindSchema
from tablestore_engine.log.message_source import MessageSource
from tablestore_engine.runtime.outside_world import Runtime
from tablestore_engine.warehouse.warehouse import Warehouse


def open_ingest(
    warehouse: Warehouse,
    spec: IngestSpec,
    open_topic: Callable[[str], tuple[MessageSource, FindSchema]],
    runtime: Runtime,
    say: Say,
) -> IngestRun:
    """`open_topic`: name → its messages, and where their schemas are asked for. Nothing is opened yet."""

    def open_source() -> tuple[MessageSource, MessageReader]:
        if spec.topic is None:
            return FileSource(spec.path or "", runtime), make_reader(spec.format, _no_registry)
        source, find_schema = open_topic(spec.topic)
        return source, make_reader(spec.format, find_schema)

    return IngestRun(spec, TableSink(warehouse, spec), open_source, runtime, say)


def make_reader(change_format: ChangeFormat, find_schema: FindSchema) -> MessageReader:
    """`find_schema`: the text of a schema of the registry, which Avro asks for."""
    match change_format:
        case ChangeFormat.DEBEZIUM_JSON:
            return DebeziumJson()
        case ChangeFormat.DEBEZIUM_AVRO:
            return DebeziumAvro(AvroReader(find_schema))
        case ChangeFormat.CANAL_JSON:
            return CanalJson()
        case ChangeFormat.MAXWELL_JSON:
            return MaxwellJson()
    return OggJson()


def _no_registry(number: int) -> str:
    raise ValueError(f"schema {number} cannot be asked for: lines of files carry no Avro")
