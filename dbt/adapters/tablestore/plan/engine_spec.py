"""What a model's YAML and config() say, and the engine's words for it."""

from __future__ import annotations

from dataclasses import dataclass

from dbt.adapters.tablestore.config.contract_and_docs import Contract
from dbt.adapters.tablestore.config.model_config import TableSettings
from dbt.adapters.tablestore.plan.build_plan import BuildPlan
from tablestore_engine.api import TableSpec, WriteSpec


@dataclass(frozen=True)
class ModelSettings:
    """Everything that the model's YAML and config() say about its table."""

    node: str
    table: TableSettings
    contract: Contract
    comment: str | None
    column_comments: tuple[tuple[str, str], ...]


def model_spec(settings: ModelSettings, plan: BuildPlan) -> WriteSpec:
    """Not yet staged and without an identity: the writer adds both."""
    return WriteSpec(
        table=table_spec(settings),
        mode=plan.mode,
        delete_when=settings.table.delete_when,
        checks=dict(settings.contract.checks),
        on_schema_change=plan.on_schema_change,
        replaces=plan.replaces,
        skip_unchanged=plan.skip_unchanged,
    )


def table_spec(settings: ModelSettings) -> TableSpec:
    """Keys, partitions, options and comments."""
    return TableSpec(
        primary_key=settings.table.primary_key,
        partition_by=settings.table.partition_by,
        options=dict(settings.table.options),
        comment=settings.comment,
        column_comments=dict(settings.column_comments),
        not_null=settings.contract.not_null,
    )
