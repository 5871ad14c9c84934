"""Manifests of listed states, read through the memory of this process: they never change."""

from __future__ import annotations

from functools import partial

from tablestore_engine.iceberg.manifest_files import IcebergFile, decode_iceberg_list, decode_iceberg_manifest
from tablestore_engine.iceberg.manifest_plan import Manifest
from tablestore_engine.iceberg.table_metadata import IcebergSnapshot
from tablestore_engine.store.iceberg_metadata.iceberg_place import IcebergPlace
from tablestore_engine.store.iceberg_metadata.iceberg_snapshots import Described
from tablestore_engine.store.table_context import TableContext


def read_manifests(
    context: TableContext, place: IcebergPlace, snapshot: IcebergSnapshot
) -> tuple[Manifest, ...]:
    """The manifests of a listed state with their files. Raises NotFound TS1201, FixData TS1160, TS1131."""
    memory, fileio = context.manifests.memory, context.fileio
    name = snapshot.manifest_list
    facts = memory.get_or_read(
        name, lambda: tuple(decode_iceberg_list(fileio.read(place.file_of(name)), name))
    )
    reads = [partial(_read_files, context, place, one.path) for one in facts]
    found = fileio.run_together(reads)
    return tuple(Manifest(one, files) for one, files in zip(facts, found, strict=True))


def remember(context: TableContext, described: Described) -> None:
    memory = context.manifests.memory
    for one in described.manifests:
        memory.put(one.facts.path, one.files, len(one.files) + 1)
    facts = tuple(one.facts for one in described.manifests)
    memory.put(described.snapshot.manifest_list, facts, len(facts) + 1)


def _read_files(context: TableContext, place: IcebergPlace, path: str) -> tuple[IcebergFile, ...]:
    return context.manifests.memory.get_or_read(  # type: ignore[no-any-return]
        path, lambda: tuple(decode_iceberg_manifest(context.fileio.read(place.file_of(path)), path))
    )
