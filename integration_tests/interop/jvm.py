"""A JVM with Paimon's bundle and pyspark's Hadoop jars, driven from Python without a compiled class of ours.

Steps      rows leave and enter the JVM as parquet files that Paimon's own format classes write and read, and the loop
           over the rows runs inside the JVM: a method handle is bound to the target and shown as a java Consumer.
           So a table costs a few dozen calls, however many rows it has.
INVARIANT  one JVM for a whole session; the process dies with ours.
"""

from __future__ import annotations

import subprocess
import tempfile
from collections.abc import Callable, Sequence
from itertools import groupby
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
from py4j.java_gateway import GatewayParameters, JavaGateway, launch_gateway

from integration_tests.interop.environments import java_command, paimon_jars, pyspark_jars

_OPTIONS = ["-Xmx640m", "-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1", "-Duser.timezone=UTC"]
_LOGGING = """status = error
rootLogger.level = off
"""
_CONSUMER = "java.util.function.Consumer"
ROW = "org.apache.paimon.data.InternalRow"


class Jvm:
    """The process and the two ways of rows, in and out."""

    def __init__(self, folder: Path) -> None:
        """`folder` takes the files that rows travel in; it must be ours alone."""
        self.folder = folder
        folder.mkdir(parents=True, exist_ok=True)
        (folder / "log4j2.properties").write_text(_LOGGING)
        jars = pyspark_jars()
        py4j_jar = next(jars.glob("py4j-*.jar"))
        options = [
            *_OPTIONS,
            f"-Djava.io.tmpdir={folder}",
            f"-Dlog4j2.configurationFile={folder}/log4j2.properties",
        ]
        port, self._process = launch(str(py4j_jar), f"{paimon_jars()['paimon-bundle']}:{jars}/*", options)
        self._gateway = JavaGateway(gateway_parameters=GatewayParameters(port=port, auto_convert=True))
        self.java: Any = self._gateway.jvm.java
        self.paimon: Any = self._gateway.jvm.org.apache.paimon
        handles = self.java.lang.invoke
        self._lookup = handles.MethodHandles.publicLookup()
        self.files: Any = self.paimon.fs.local.LocalFileIO.create()
        self._parquet = self.paimon.format.FileFormat.fromIdentifier("parquet", self.paimon.options.Options())

    def close(self) -> None:
        """End the process that this object started."""
        self._gateway.shutdown()
        self._process.terminate()
        self._process.wait(timeout=30)

    def path(self, location: Path | str) -> Any:
        """A Paimon path."""
        return self.paimon.fs.Path(str(location))

    def load(self, reader: Any, row_type: Any) -> pa.Table:
        """All rows of a Paimon RecordReader as Arrow."""
        target = self._new_file()
        out = self.files.newOutputStream(self.path(target), True)
        writer = self._parquet.createWriterFactory(row_type).create(out, "none")
        self._drain(reader, self._method("format.FormatWriter", "addElement", ROW).bindTo(writer))
        for part in (reader, writer, out):
            part.close()
        table = pq.ParquetFile(target).read()
        target.unlink()
        return table

    def feed(self, rows: pa.Table, kinds: Sequence[str], row_type: Any, sink: Any) -> None:
        """Every row, with its kind, to `sink.write(InternalRow)`, in order."""
        write = self._method("table.sink.TableWrite", "write", ROW).bindTo(sink)
        self._feed(rows, kinds, row_type, lambda _: write)

    def rows(self, rows: pa.Table, kinds: Sequence[str], row_type: Any) -> Any:
        """The rows as a java.util.ArrayList of copies."""
        listed = self.java.util.ArrayList()
        serializer = self.paimon.data.serializer.InternalRowSerializer(row_type)
        invoke = self.java.lang.invoke
        copy = self._lookup.findVirtual(
            self.type("data.serializer.InternalRowSerializer"),
            "copy",
            invoke.MethodType.methodType(self.type("data.InternalRow"), self.type("data.InternalRow")),
        ).bindTo(serializer)
        add = self._lookup.findVirtual(
            self.java.lang.Class.forName("java.util.ArrayList"),
            "add",
            invoke.MethodType.methodType(
                self.java.lang.Boolean.TYPE, self.java.lang.Class.forName("java.lang.Object")
            ),
        ).bindTo(listed)
        self._feed(
            rows,
            kinds,
            row_type,
            lambda _: invoke.MethodHandles.filterReturnValue(copy, _as_object(self, add)),
        )
        return listed

    def _feed(self, rows: pa.Table, kinds: Sequence[str], row_type: Any, sink: Callable[[str], Any]) -> None:
        invoke, start = self.java.lang.invoke, 0
        set_kind = self._method("data.InternalRow", "setRowKind", "org.apache.paimon.types.RowKind")
        for kind, group in groupby(kinds):
            length = len(list(group))
            value = self.paimon.types.RowKind.fromShortString(kind)
            mark = invoke.MethodHandles.insertArguments(set_kind, 1, self._array(value))
            reader = self._reader(rows.slice(start, length), row_type)
            self._drain(reader, invoke.MethodHandles.foldArguments(sink(kind), mark))
            reader.close()
            start += length

    def _reader(self, rows: pa.Table, row_type: Any) -> Any:
        source = self._new_file()
        # Java reads nanoseconds from INT96 alone, which Arrow writes for all timestamps of a file or for none
        fine = any("[ns" in str(field.type) for field in rows.schema)
        pq.write_table(rows, source, compression="none", use_deprecated_int96_timestamps=fine)
        factory = self._parquet.createReaderFactory(row_type, row_type, self.java.util.ArrayList())
        size = source.stat().st_size
        return factory.createReader(
            self.paimon.format.FormatReaderContext(self.files, self.path(source), size)
        )

    def compare(self, builder: Any, test: str, column: tuple[int, Any], value: str) -> Any:
        """`builder.test(position, literal)`; the literal is cast in the JVM, since py4j would lose its exact class."""
        position, data_type = column
        invoke, names = self.java.lang.invoke, self.java.lang.Class.forName
        thing, predicate = names("java.lang.Object"), self.type("predicate.Predicate")
        wanted = invoke.MethodType.methodType(predicate, self.java.lang.Integer.TYPE, self._classes(thing))
        tested = self._lookup.findVirtual(self.type("predicate.PredicateBuilder"), test, wanted).bindTo(
            builder
        )
        text = invoke.MethodType.methodType(
            thing, names("java.lang.String"), self._classes(self.type("types.DataType"))
        )
        cast = self._lookup.findStatic(self.type("utils.TypeUtils"), "castFromString", text)
        cast = invoke.MethodHandles.insertArguments(cast, 1, self._array(data_type))
        handles = self._gateway.new_array(invoke.MethodHandle, 1)
        handles[0] = cast
        combined = invoke.MethodHandles.filterArguments(tested, 1, handles)
        return combined.invokeWithArguments([position, value])

    def _classes(self, kind: Any) -> Any:
        classes = self._gateway.new_array(self.java.lang.Class, 1)
        classes[0] = kind
        return classes

    def call(self, target: Any, owner: str, name: str, **arguments: Any) -> Any:
        """A method that only an interface has (py4j finds none on classes that are not public): `x=(class, value)`."""
        kinds = self._gateway.new_array(self.java.lang.Class, len(arguments))
        values = self._gateway.new_array(self.java.lang.Object, len(arguments))
        for number, (kind, value) in enumerate(arguments.values()):
            kinds[number], values[number] = self.java.lang.Class.forName(kind), value
        return self.type(owner).getMethod(name, kinds).invoke(target, values)

    def type(self, name: str) -> Any:
        """The java Class of a Paimon class."""
        return self.java.lang.Class.forName(f"org.apache.paimon.{name}")

    def _method(self, owner: str, name: str, argument: str) -> Any:
        """Handle of a public method that takes one argument and returns nothing."""
        kind = self.java.lang.invoke.MethodType.methodType(
            self.java.lang.Void.TYPE, self.java.lang.Class.forName(argument)
        )
        return self._lookup.findVirtual(self.type(owner), name, kind)

    def consumer(self, owner: str, name: str, target: Any) -> Any:
        """A java Consumer of rows that calls a method of `target`."""
        consumer = self.java.lang.Class.forName(_CONSUMER)
        handle = self._method(owner, name, ROW).bindTo(target)
        return self.java.lang.invoke.MethodHandleProxies.asInterfaceInstance(consumer, handle)

    def writer_of_buckets(self, write: Any) -> Any:
        """A java BiConsumer of rows and buckets that calls `write(InternalRow, int)`."""
        handles, names = self.java.lang.invoke, self.java.lang.Class.forName
        kind = handles.MethodType.methodType(
            self.java.lang.Void.TYPE, names(ROW), self._classes(self.java.lang.Integer.TYPE)
        )
        handle = self._lookup.findVirtual(self.type("table.sink.TableWrite"), "write", kind).bindTo(write)
        consumer = names("java.util.function.BiConsumer")
        return handles.MethodHandleProxies.asInterfaceInstance(consumer, handle)

    def _drain(self, reader: Any, handle: Any) -> None:
        """Give every row of a reader to the handle; the loop runs in the JVM."""
        consumer = self.java.lang.Class.forName(_CONSUMER)
        shown = self.java.lang.invoke.MethodHandleProxies.asInterfaceInstance(consumer, handle)
        self.call(reader, "reader.RecordReader", "forEachRemaining", sink=(_CONSUMER, shown))

    def strings(self, *texts: str) -> Any:
        """A Java array."""
        made = self._gateway.new_array(self.java.lang.String, len(texts))
        for at, text in enumerate(texts):
            made[at] = text
        return made

    def _array(self, value: Any) -> Any:
        array = self._gateway.new_array(self.java.lang.Object, 1)
        array[0] = value
        return array

    def _new_file(self) -> Path:
        with tempfile.NamedTemporaryFile(dir=self.folder, suffix=".parquet", delete=False) as handle:
            return Path(handle.name)


def _as_object(jvm: Jvm, add: Any) -> Any:
    """`add` taking an InternalRow, so that it can follow `copy`."""
    invoke = jvm.java.lang.invoke
    return add.asType(invoke.MethodType.methodType(jvm.java.lang.Void.TYPE, jvm.type("data.InternalRow")))


def launch(py4j_jar: str, classpath: str, options: list[str]) -> tuple[int, subprocess.Popen[bytes]]:
    """A JVM that py4j speaks to: its port and its process, which dies with ours."""
    port, process = launch_gateway(
        jarpath=py4j_jar,
        classpath=classpath,
        java_path=java_command(),
        javaopts=options,
        die_on_exit=True,
        return_proc=True,
    )
    return int(port), process
