"""Expiring tables of tests: a few snapshots, rules that leave n of them, what can be read, files that nobody names."""

from __future__ import annotations

from pathlib import Path

from tablestore_engine.format.snapshot import Snapshot
from tablestore_engine.store.expiry.referenced_files import needed_names
from tablestore_engine.store.retention import Retention
from tablestore_engine.store.table_store import TableStore
from tests.doubles.faults import tree_files
from tests.unit.store.table_world import Row, delete, make_table, put, row, rows_of

_ANY_TIME = -(1 << 60)  # the clocks of tests begin anew with each handle
_METADATA = ("snapshot", "schema", "tag", "branch", "consumer", "expire")


def newest(count: int) -> Retention:
    """Only the newest `count` snapshots stay, whatever their age."""
    return Retention(count, None, retained_ms=_ANY_TIME, grace_ms=_ANY_TIME, limit=None)


def visible(store: TableStore) -> dict[str, list[Row]]:
    """Rows of every snapshot, tag and staged snapshot, as readers get them."""
    found = {f"snapshot {number}": rows_of(store, number) for number in store.snapshots.list_ids()}
    for name in store.tags.list_all():
        plan = store.plan_scan(store.tags.get(name).snapshot)
        found[f"tag {name}"] = sorted(store.read(plan).to_pylist(), key=repr)
    for staged in store.staging.list_all():
        found[f"staged {staged.name}"] = rows_of(store.on_staged(staged.name))
    return found


def strays(store: TableStore) -> set[str]:
    """Names of data, changelog, manifest, index and statistics files that no snapshot, tag or branch names."""
    context = store.context
    needed: set[str] = set()
    for one in _roots(store):
        needed |= needed_names(context, one)
    if context.fileio.folders is None:
        files = set(tree_files(context.fileio, store.location))
        metadata = {
            path for path in files if any(path.startswith(f"{store.location}/{part}/") for part in _METADATA)
        }
        return {path.rpartition("/")[2] for path in files - metadata} - needed
    root = Path(store.location)
    found = {path.name for path in root.rglob("*") if path.is_file()}
    hints = {path.name for part in _METADATA for path in (root / part).rglob("*")}
    return found - hints - needed


def _roots(store: TableStore) -> list[Snapshot]:
    found = [*store.snapshots.list_all(), *(store.tags.get(name).snapshot for name in store.tags.list_all())]
    for staged in store.staging.list_all():
        found += [staged.snapshot, *([] if staged.base is None else [staged.base])]
    return found


def written(root: Path, count: int = 5, **table: object) -> TableStore:
    """`count` snapshots: rows of keys 0 to 3, each time some other ones; the last one deletes."""
    store = make_table(root, **table)  # type: ignore[arg-type]
    for number in range(count - 1):
        put(store, row(number % 4, f"v{number}"), row((number + 1) % 4, f"v{number}"))
    delete(store, {"id": 1})
    return store
