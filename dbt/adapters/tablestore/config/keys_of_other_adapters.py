"""Config keys that dbt-spark, dbt-databricks and warehouse adapters know and this one does not.

CHANGE     the effect of a config key of another adapter
WHY        a project that moves here keeps its config; a key that only changes the layout is ignored with a
           warning, a key that changes rows is refused.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from dbt.adapters.tablestore.messages import WarnedOnce
from tablestore_engine.api import Unsupported

_FORMAT = "every table is a Paimon table with Parquet files"
_ORDER = (
    "rows lie by partition_by, buckets and the primary key; for a model without keys set clustering.columns in "
    "table_properties"
)
_PLACE = "a table is in the profile's warehouse, under its schema"
_SERVICE = "it belongs to a Databricks service"
_IN_PROCESS = "a Python model runs in the process of dbt, with its Python and its Spark session"
IGNORED: Mapping[str, str] = {
    "file_format": _FORMAT,
    "table_format": _FORMAT,
    "compression": f"{_FORMAT}; set file.compression in table_properties",
    "options": f"{_FORMAT}; its options go under table_properties",
    "location_root": _PLACE,
    "include_full_name_in_path": _PLACE,
    "cluster_by": _ORDER,
    "clustered_by": _ORDER,
    "liquid_clustered_by": _ORDER,
    "auto_liquid_cluster": _ORDER,
    "zorder": _ORDER,
    "databricks_tags": _SERVICE,
    "databricks_compute": _SERVICE,
    "query_tags": _SERVICE,
    "incremental_apply_config_changes": "a full refresh applies every option, a later run those that may change",
    "unique_tmp_table_suffix": "no temporary table is made",
    "view_update_via_alter": "a view is replaced in one step",
    "use_safer_relation_operations": "a table is replaced in one step",
    "submission_method": _IN_PROCESS,
    "cluster": _IN_PROCESS,
    "cluster_id": _IN_PROCESS,
    "job_cluster_config": _IN_PROCESS,
    "python_job_config": _IN_PROCESS,
    "create_notebook": _IN_PROCESS,
    "user_folder_for_python": _IN_PROCESS,
    "environment_key": _IN_PROCESS,
    "environment_dependencies": f"{_IN_PROCESS}; name what it needs in packages",
    "additional_libs": f"{_IN_PROCESS}; name what it needs in packages",
    "timeout": _IN_PROCESS,
    "grants": "files have no grants; set access rights on the warehouse's storage",
}
_ABOUT_ROWS: Mapping[str, str] = {
    "matched_condition": "filter the rows in the model, or use incremental_predicates",
    "not_matched_condition": "filter the rows in the model",
    "not_matched_by_source_action": "use delete_when for rows that mean delete, or materialized='table'",
    "not_matched_by_source_condition": "use delete_when for rows that mean delete, or materialized='table'",
    "skip_matched_step": "leave rows with known keys out in the model",
    "skip_not_matched_step": "leave rows with new keys out in the model",
    "merge_with_schema_evolution": "set on_schema_change to append_new_columns or sync_all_columns",
    "source_alias": "name the source DBT_INTERNAL_SOURCE in incremental_predicates",
    "target_alias": "name the table DBT_INTERNAL_DEST in incremental_predicates",
    "row_filter": "set access rights on the warehouse's storage, or build a filtered model",
    "column_mask": "set access rights on the warehouse's storage, or build a masked model",
}


_HERE = ("session", "in_process")  # values of submission_method that say what is done


def _is_set(value: object) -> bool:
    return value not in (None, False, "", [], {}, *_HERE)


def explain_ignored(config: Mapping[str, Any]) -> dict[str, str]:
    """Keys without effect, in the order of the config."""
    return {key: IGNORED[key] for key in config if key in IGNORED and _is_set(config[key])}


class IgnoredKeys:
    """Warns of each key once per invocation: a project sets such keys for all its models."""

    def __init__(self) -> None:
        self._warned = WarnedOnce()

    def tell(self, name: str, config: Mapping[str, Any]) -> None:
        """One warning for each key of model `name` that was not told of yet."""
        for key, why in explain_ignored(config).items():
            self._warned.warn(key, f"config {key!r} is ignored (first seen on model {name}): {why}")


def check_rows_asked(name: str, config: Mapping[str, Any]) -> None:
    """Raises Unsupported TS1858 for the first key whose absence would give other rows."""
    for key, instead in _ABOUT_ROWS.items():
        if _is_set(config.get(key)):
            raise Unsupported(
                "TS1858",
                f"model {name}: config {key!r} is not supported",
                why="it says which rows are written or seen, so it cannot be left aside silently",
                fix=instead,
            )
