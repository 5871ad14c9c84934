"""The reader of each format."""

from __future__ import annotations

from tablestore_engine.ingest.canal_maxwell_ogg import CanalJson, MaxwellJson, OggJson
from tablestore_engine.ingest.change_event import MessageReader
from tablestore_engine.ingest.debezium import DebeziumAvro, DebeziumJson
from tablestore_engine.ingest.ingest_spec import ChangeFormat
from tablestore_engine.log.avro_decode import AvroReader, FindSchema


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
