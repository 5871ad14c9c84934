"""Flink 1.20's own format classes in a JVM, without a cluster: bytes of a message in, its rows out.

Rows       come back as Flink's json format writes them again, behind Flink's own name of their kind
"""

from __future__ import annotations

import json
from decimal import Decimal
from pathlib import Path
from typing import Any

from py4j.java_gateway import GatewayParameters, JavaGateway

from integration_tests.interop.environments import flink_jars, pyspark_jars
from integration_tests.interop.jvm import launch

Read = tuple[str, dict[str, Any]]


class Flink:
    """One per session."""

    name = "flink 1.20"

    def __init__(self, folder: Path) -> None:
        """Starts the JVM; `folder` is for what it may put down."""
        jars = pyspark_jars()
        classpath = ":".join([*map(str, flink_jars().values()), f"{jars}/*"])
        port, self._process = launch(
            str(next(jars.glob("py4j-*.jar"))),
            classpath,
            ["-Duser.timezone=UTC", "-Xmx384m", f"-Djava.io.tmpdir={folder}"],
        )
        self._gateway = JavaGateway(gateway_parameters=GatewayParameters(port=port, auto_convert=True))
        self._jvm: Any = self._gateway.jvm
        self._flink: Any = self._jvm.org.apache.flink
        self._formats = self._flink.formats

    def close(self) -> None:
        """End the process that this object started."""
        self._gateway.shutdown()
        self._process.terminate()
        self._process.wait(timeout=30)

    def read(self, value_format: str, row: str, values: list[bytes | None], registry: str = "") -> list[Read]:
        """(kind, row) of each row of these values; `row` is a type as Flink's SQL writes it."""
        return self._read(self._reader(value_format, self._type(row), registry), row, values)

    def read_key(self, row: str, keys: list[bytes], registry: str) -> list[Read]:
        """Keys, by Flink's avro-confluent."""
        kind = self._type(row)
        avro = self._formats.avro
        schema = avro.typeutils.AvroSchemaConverter.convertToSchema(kind)
        coder = avro.registry.confluent.ConfluentRegistryAvroDeserializationSchema.forGeneric(
            schema, registry
        )
        converter = avro.AvroToRowDataConverters.createRowConverter(kind)
        return self._read(
            avro.AvroRowDataDeserializationSchema(coder, converter, self._info()), row, list(keys)
        )

    def _read(self, reader: Any, row: str, values: list[bytes | None]) -> list[Read]:
        out = self._jvm.java.util.ArrayList()
        collector = self._flink.api.common.functions.util.ListCollector(out)
        reader.open(None)
        for value in values:
            reader.deserialize(value, collector)
        names = self._formats.json.JsonFormatOptions.MapNullKeyMode
        writer = self._formats.json.JsonRowDataSerializationSchema(
            self._type(row), self._formats.common.TimestampFormat.SQL, names.FAIL, "null", True, False
        )
        writer.open(None)
        return [(one.getRowKind().shortString(), _parsed(bytes(writer.serialize(one)))) for one in out]

    def _reader(self, value_format: str, kind: Any, registry: str) -> Any:
        data_type = self._flink.table.types.utils.TypeConversions.fromLogicalToDataType(kind)
        none, info, times = (
            self._jvm.java.util.ArrayList(),
            self._info(),
            self._formats.common.TimestampFormat.SQL,
        )
        of_json = self._formats.json
        match value_format:
            case "canal-json":
                return of_json.canal.CanalJsonDeserializationSchema.builder(data_type, none, info).build()
            case "maxwell-json":
                return of_json.maxwell.MaxwellJsonDeserializationSchema(data_type, none, info, False, times)
            case "debezium-json":
                return of_json.debezium.DebeziumJsonDeserializationSchema(
                    data_type, none, info, False, False, times
                )
            case "json":
                return of_json.JsonRowDataDeserializationSchema(kind, info, True, False, times)
            case _:
                debezium = self._formats.avro.registry.confluent.debezium
                return debezium.DebeziumAvroDeserializationSchema(
                    kind, info, registry, None, self._jvm.java.util.HashMap()
                )

    def _type(self, text: str) -> Any:
        return self._flink.table.types.logical.utils.LogicalTypeParser.parse(text)

    def _info(self) -> Any:
        """Nobody looks at it."""
        row = self._jvm.java.lang.Class.forName("org.apache.flink.table.data.RowData")
        return self._flink.api.common.typeinfo.TypeInformation.of(row)


def _parsed(text: bytes) -> dict[str, Any]:
    parsed = json.loads(text, parse_float=Decimal)
    assert isinstance(parsed, dict)
    return parsed
