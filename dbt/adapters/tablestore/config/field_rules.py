"""Config keys of single columns: `fields`, and what a merge engine does with all of them.

CHANGE     the keys under `fields` of a model
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from dbt.adapters.tablestore.config.value_shapes import read_mapping, read_word, text_of, wrong_shape

# key of a column → name of its table option
_OF_COLUMN = {
    "aggregate_function": "aggregate-function",
    "ignore_retract": "ignore-retract",
    "distinct": "distinct",
    "list_agg_delimiter": "list-agg-delimiter",
    "nested_key": "nested-key",
    "count_limit": "count-limit",
    "ts_field": "ts-field",
    "sequence_group": "sequence-group",
    "stats_mode": "stats-mode",
    "default_value": "default-value",
}
# key of the model → table option
_OF_TABLE = {
    "default_aggregate_function": "fields.default-aggregate-function",
    "ignore_delete": "ignore-delete",
    "ignore_update_before": "ignore-update-before",
    "rowkind_field": "rowkind.field",
}


def read_field_options(name: str, values: Mapping[str, Any]) -> dict[str, str]:
    """Table options of `fields` and of the keys for all columns. Raises FixRequest TS1811."""
    options = {
        option: text
        for key, option in _OF_TABLE.items()
        if (text := read_word(name, key, values.get(key))) is not None
    }
    for column, rules in read_mapping(name, "fields", values.get("fields")).items():
        for key, value in read_mapping(name, f"fields.{column}", rules).items():
            if key not in _OF_COLUMN:
                raise wrong_shape(name, f"fields.{column}", key, f"keys {', '.join(_OF_COLUMN)}")
            options[f"fields.{column}.{_OF_COLUMN[key]}"] = text_of(value)
    return options
