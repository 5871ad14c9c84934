"""Options that a merge engine or a function does not read are refused when the table is made."""

from __future__ import annotations

from collections.abc import Mapping

import pytest

from tablestore_engine.errors import TablestoreError
from tablestore_engine.lsm.merge_options import check_merge_options
from tests.unit.store.bucket_world import make_schema

AGGREGATION = {"merge-engine": "aggregation"}
REMOVING = {**AGGREGATION, "aggregation.remove-record-on-delete": "true"}
PARTIAL = {"merge-engine": "partial-update"}
GROUP = {**PARTIAL, "fields.at.sequence-group": "n"}
COLUMNS = {"id": "BIGINT", "n": "INT", "t": "STRING", "at": "INT", "u": "STRING"}


@pytest.mark.parametrize(
    ("options", "code"),
    [
        ({**PARTIAL, "fields.at.sequence-group": "n,t", "fields.n.aggregate-function": "sum"}, None),
        ({**PARTIAL, "partial-update.remove-record-on-delete": "true"}, None),
        ({**PARTIAL, "fields.n.aggregate-function": "last_non_null_value"}, None),
        ({**PARTIAL, "fields.n.aggregate-function": "sum"}, "TS1658"),
        ({**PARTIAL, "fields.at.sequence-group": "n,m"}, "TS1658"),
        ({**PARTIAL, "fields.at.sequence-group": "id"}, "TS1658"),
        ({**PARTIAL, "fields.at.sequence-group": "n", "fields.t.sequence-group": "n"}, "TS1658"),
        ({**AGGREGATION, "fields.at.sequence-group": "n"}, "TS1658"),
        ({**GROUP, "partial-update.remove-record-on-delete": "true"}, "TS1658"),
        ({**GROUP, "partial-update.remove-record-on-sequence-group": "n"}, "TS1658"),
        (
            {**GROUP, "partial-update.remove-record-on-sequence-group": "at", "ignore-delete": "true"},
            "TS1658",
        ),
        ({**GROUP, "fields.n.aggregate-function": "first_non_null_value"}, "TS1667"),
        (
            {
                **PARTIAL,
                "fields.at.sequence-group": "n",
                "fields.t.sequence-group": "u",
                "partial-update.remove-record-on-sequence-group": "at,t",
            },
            "TS1667",
        ),
        ({**AGGREGATION, "fields.n.aggregate-function": "sum"}, None),
        ({**AGGREGATION, "fields.default-aggregate-function": "max", "sequence.field": "at"}, None),
        ({**AGGREGATION, "fields.t.aggregate-function": "listagg", "fields.t.distinct": "true"}, None),
        ({**AGGREGATION, "fields.n.ignore-retract": "true"}, None),
        ({"fields.n.aggregate-function": "sum"}, "TS1658"),
        ({"fields.default-aggregate-function": "sum"}, "TS1658"),
        ({"aggregation.remove-record-on-delete": "true"}, "TS1658"),
        ({**AGGREGATION, "fields.m.aggregate-function": "sum"}, "TS1658"),
        ({**AGGREGATION, "fields.id.aggregate-function": "max"}, "TS1658"),
        ({**AGGREGATION, "fields.at.aggregate-function": "max", "sequence.field": "at"}, "TS1658"),
        ({**AGGREGATION, "fields.n.aggregate-function": "sum", "fields.n.distinct": "true"}, "TS1658"),
        ({**AGGREGATION, "fields.t.list-agg-delimiter": ";"}, "TS1658"),
        ({**REMOVING, "fields.n.ignore-retract": "true"}, "TS1658"),
        ({**REMOVING, "fields.n.aggregate-function": "first_value"}, "TS1667"),
        ({**AGGREGATION, "fields.t.aggregate-function": "sum"}, "TS1662"),
        ({**AGGREGATION, "fields.n.aggregate-function": "listagg"}, "TS1662"),
        ({**AGGREGATION, "fields.n.aggregate-function": "collect"}, "TS1662"),
        ({**AGGREGATION, "fields.n.aggregate-function": "merge_map"}, "TS1662"),
        ({**AGGREGATION, "fields.n.aggregate-function": "bool_or"}, "TS1662"),
        ({**AGGREGATION, "fields.n.aggregate-function": "rbm64"}, "TS1661"),
        ({**AGGREGATION, "fields.n.aggregate-function": "rbm32"}, "TS1662"),
        ({**AGGREGATION, "fields.n.aggregate-function": "nested_update"}, "TS1662"),
        ({**AGGREGATION, "fields.n.aggregate-function": "merge_map_with_keytime"}, "TS1662"),
        ({**AGGREGATION, "fields.n.nested-key": "a"}, "TS1658"),
        ({**AGGREGATION, "fields.n.count-limit": "2"}, "TS1658"),
        ({**AGGREGATION, "fields.n.ts-field": "a"}, "TS1658"),
        (
            {
                **AGGREGATION,
                "fields.t.aggregate-function": "listagg",
                "fields.t.distinct": "true",
                "fields.t.list-agg-delimiter": "",
            },
            "TS1665",
        ),
    ],
)
def test_options_go_with_the_engine_or_are_refused(options: Mapping[str, str], code: str | None) -> None:
    """What is accepted has a reader; the others name the option or the column."""
    schema = make_schema(COLUMNS, options=options)
    if code is None:
        check_merge_options(schema)
        return
    with pytest.raises(TablestoreError, match=code):
        check_merge_options(schema)
