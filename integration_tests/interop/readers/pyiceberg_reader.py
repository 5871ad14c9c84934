"""pyiceberg: any snapshot, or a tag, of the newest metadata that `version-hint.text` names."""

import importlib.metadata

from answers import answer
from pyiceberg.table import StaticTable


def scanned(request):
    """The scan of a request."""
    table = StaticTable.from_metadata(request["location"])
    snapshot = request.get("snapshot")
    if request.get("tag") is not None:
        snapshot = table.snapshot_by_name(request["tag"]).snapshot_id
    return table.scan(snapshot_id=snapshot)


def read(request):
    """All rows."""
    return scanned(request).to_arrow()


def count(request):
    """Their number, by metadata where there are no deleted rows."""
    return scanned(request).count()


def describe(request):
    """Ids of all snapshots, tags, and the newest snapshot."""
    metadata = StaticTable.from_metadata(request["location"]).metadata
    tags = {name: ref.snapshot_id for name, ref in metadata.refs.items() if ref.snapshot_ref_type == "tag"}
    ids = sorted(one.snapshot_id for one in metadata.snapshots)
    return {"snapshots": ids, "tags": tags, "newest": metadata.current_snapshot_id}


answer(
    {
        "read": read,
        "count": count,
        "describe": describe,
        "ping": lambda _: importlib.metadata.version("pyiceberg"),
    }
)
