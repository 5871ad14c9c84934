"""A tag goes, and with it the files that it alone kept: its snapshot has expired.

Steps      the tag's file → the tag in Iceberg metadata → when its snapshot does not count any more: its files, less
           those of the earliest snapshot that does, of other tags and of branches
INVARIANT  files come once and go once: what a tag and a later snapshot share is in each snapshot between them, so that
           the earliest one speaks for all.
CRASH      behind the first step, or when the Iceberg metadata cannot be written: files that nothing names.
"""

from __future__ import annotations

from tablestore_engine.format.snapshot import Snapshot
from tablestore_engine.store.expiry.expire_snapshots import delete_files
from tablestore_engine.store.expiry.expiry_holds import find_kept
from tablestore_engine.store.expiry.referenced_files import (
    NamedFiles,
    changelog_files,
    live_data,
    metadata_files,
    needed_names,
)
from tablestore_engine.store.iceberg_metadata.iceberg_sync import follow_iceberg
from tablestore_engine.store.metadata.tags import TagStore
from tablestore_engine.store.table_context import TableContext


def delete_tag(context: TableContext, name: str) -> int:
    """The number of files that went. Raises NotFound TS1321; what a damaged manifest raises, then all stays."""
    tags = TagStore(context.fileio, context.layout, context.snapshots)
    tagged = tags.get(name).snapshot
    earliest = context.snapshots.find_earliest_id()
    first = None if earliest is None else context.snapshots.find(earliest)
    is_alone = first is not None and tagged.id < first.id
    files = _files_of(context, tagged) if is_alone else NamedFiles()
    tags.delete(name)
    trouble = follow_iceberg(context)
    if first is None or not is_alone or trouble is not None:
        return 0
    going = files.all_but(needed_names(context, first) | find_kept(context, first.id))
    delete_files(context, *going.context)
    return going.count


def _files_of(context: TableContext, tagged: Snapshot) -> NamedFiles:
    return NamedFiles(
        data=live_data(context, tagged),
        changelog=changelog_files(context, tagged),
        metadata=metadata_files(context, tagged),
    )
