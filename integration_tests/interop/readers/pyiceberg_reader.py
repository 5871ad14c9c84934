"""pyiceberg: any snapshot, or a tag, of the newest metadata that `version-hint.text` names."""

import importlib.metadata

import pyarrow as pa
from answers import answer
from pyiceberg.expressions.parser import parse
from pyiceberg.expressions.visitors import bind
from pyiceberg.io.pyarrow import expression_to_pyarrow
from pyiceberg.table import StaticTable


def scanned(request, **words):
    """The scan of a request."""
    table = StaticTable.from_metadata(request["location"])
    snapshot = request.get("snapshot")
    if request.get("tag") is not None:
        snapshot = table.snapshot_by_name(request["tag"]).snapshot_id
    return table.scan(snapshot_id=snapshot, **words)


def read(request):
    """All rows."""
    return scanned(request).to_arrow()


def where(request):
    """Rows that a filter selects: of the table, or of the Arrow file `rows`, without any metadata."""
    if request.get("rows") is None:
        return scanned(request, row_filter=request["filter"]).to_arrow()
    bound = bind(scanned(request).projection(), parse(request["filter"]), case_sensitive=True)
    with pa.OSFile(request["rows"]) as source:
        return pa.ipc.open_file(source).read_all().filter(expression_to_pyarrow(bound))


def planned(request):
    """How many data files a filter leaves, by metadata."""
    return len(list(scanned(request, row_filter=request["filter"]).plan_files()))


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
        "where": where,
        "planned": planned,
        "describe": describe,
        "ping": lambda _: importlib.metadata.version("pyiceberg"),
    }
)
