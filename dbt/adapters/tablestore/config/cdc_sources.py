"""Sources of a dbt project that are kept by change messages: `meta.tablestore.cdc` of a source's table.

CHANGE     the keys of `meta.tablestore.cdc` of a dbt source
INVARIANT  read completely before anything is ingested; a key that is not known is an error, never ignored.
"""

from __future__ import annotations

import difflib
from collections.abc import Collection, Mapping
from dataclasses import fields
from typing import Any

from dbt.adapters.tablestore.model_graph import nested
from tablestore_engine.api import FixRequest, IngestSpec

CDC_KEYS = tuple(one.name for one in fields(IngestSpec) if one.name not in ("into", "interval_s"))


def read_cdc_sources(sources: Mapping[str, Any], wanted: Collection[str] = ()) -> dict[str, IngestSpec]:
    """`wanted`: names as `source.table` or `source`; none: all. Raises FixRequest TS1848, TS1418, TS1419, TS1101."""
    found: dict[str, IngestSpec] = {}
    known: set[str] = set()
    for node, source in sources.items():
        cdc = _cdc_of(source)
        if cdc is None:
            continue
        name = f"{source['source_name']}.{source['name']}"
        known |= {name, str(source["source_name"])}
        if not wanted or {name, str(source["source_name"])} & set(wanted):
            found[node] = _spec(name, f"{source['schema']}.{source['identifier']}", cdc)
    missing = sorted(set(wanted) - known)
    if missing:
        raise _wrong(
            f"no source {missing[0]!r} is kept by change messages",
            f"meta.tablestore.cdc stands at {', '.join(sorted(known)) or 'no source'}",
            "name a source, or source.table, that has it",
        )
    return found


def _cdc_of(source: Mapping[str, Any]) -> object:
    """Under `meta`, or under `config: meta:`."""
    found = (nested(one).get("cdc") for one in (source, source.get("config") or {}))
    return next((one for one in found if one is not None), None)


def _spec(name: str, table: str, cdc: object) -> IngestSpec:
    if not isinstance(cdc, Mapping):
        raise _wrong(
            f"source {name}: meta.tablestore.cdc has the wrong form",
            f"expected keys and values, got {cdc!r}",
            "write for example {format: debezium-json, topic: shop.public.orders}",
        )
    for key in cdc:
        if key not in CDC_KEYS:
            near = difflib.get_close_matches(str(key), CDC_KEYS, n=1, cutoff=0.0)
            raise _wrong(
                f"source {name}: meta.tablestore.cdc has an unknown key {key!r}",
                f"the nearest known one is {near[0]!r}",
                f"use one of {', '.join(CDC_KEYS)}; passwords and brokers belong into the profile",
            )
    if "format" not in cdc:
        raise _wrong(
            f"source {name}: meta.tablestore.cdc names no format",
            "the same message means different things in different formats",
            "add for example format: debezium-json",
        )
    texts = {
        key: {str(k): str(v) for k, v in cdc[key].items()} for key in ("columns", "options") if key in cdc
    }
    return IngestSpec(into=table, **{**cdc, **texts})


def _wrong(what: str, why: str, fix: str) -> FixRequest:
    return FixRequest("TS1848", what, why=why, fix=fix)
