"""materialized='streaming': what a model says of the streams that it follows."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from dbt.adapters.tablestore.config.value_shapes import read_choice
from tablestore_engine.api import FixRequest
from tablestore_engine.spi import OutputMode

STREAMING = "streaming"
STREAMING_STRATEGIES = ("merge", "append")
ROW_KINDS = ("appends", "all")
OUTPUT_MODES = ("update", "append")
_KEYS = ("row_kinds", "max_snapshots_per_batch", "output_mode")
_CHANGED = ("apply", "continue", "fail")


@dataclass(frozen=True)
class Streaming:
    """`row_kinds`, of a query whose result has no `_row_kind`: appends: any other kind than +I is an error; all: its
    rows are rows. `most_snapshots`: of an input in one commit; None: all there are. `on_change`: of the SQL.
    `output_modes`: of SQL that needs earlier rows, the first that Spark can run.
    """

    row_kinds: str = "appends"
    most_snapshots: int | None = None
    on_change: str = "apply"
    output_modes: tuple[OutputMode, ...] = (OutputMode.APPEND,)


def read_streaming(
    name: str, values: Mapping[str, Any], config: Mapping[str, Any], strategy: str, *, is_keyed: bool
) -> Streaming | None:
    """Raises FixRequest TS1842, TS1811."""
    if config.get("materialized") != STREAMING:
        given = [key for key in _KEYS if key in values]
        if given:
            raise _wrong(
                name,
                f"{given[0]} needs materialized='streaming'",
                f"remove it, or set materialized={STREAMING!r}",
            )
        return None
    if strategy not in STREAMING_STRATEGIES:
        raise _wrong(
            name,
            f"incremental_strategy {strategy!r} does not go with materialized='streaming'",
            "remove it: with unique_key rows are put and deleted by key, without it they are added",
        )
    most = values.get("max_snapshots_per_batch")
    if most is not None and (isinstance(most, bool) or not isinstance(most, int) or most < 1):
        raise _wrong(
            name, f"max_snapshots_per_batch {most!r} is no number of snapshots", "write a whole number from 1"
        )
    changed = str(config.get("on_configuration_change") or "apply")
    return Streaming(
        read_choice(name, "row_kinds", values, ROW_KINDS, "appends"),
        most,
        read_choice(name, "on_configuration_change", {"on_configuration_change": changed}, _CHANGED, "apply"),
        _output_modes(name, values, is_keyed=is_keyed),
    )


def _output_modes(name: str, values: Mapping[str, Any], *, is_keyed: bool) -> tuple[OutputMode, ...]:
    if "output_mode" not in values:
        return (OutputMode.UPDATE, OutputMode.APPEND) if is_keyed else (OutputMode.APPEND,)
    mode = OutputMode(read_choice(name, "output_mode", values, OUTPUT_MODES, "update"))
    if mode is OutputMode.UPDATE and not is_keyed:
        raise _wrong(
            name,
            "output_mode 'update' has no unique_key",
            "name the key that a row is put by, or set output_mode='append': only rows that are final are added",
        )
    return (mode,)


def _wrong(name: str, what: str, fix: str) -> FixRequest:
    return FixRequest(
        "TS1842", f"model {name}: {what}", why="its config does not say how streams are followed", fix=fix
    )
