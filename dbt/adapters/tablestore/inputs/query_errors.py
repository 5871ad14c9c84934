"""Errors of a model's query that no run can make right: `dbt compile` refuses them as `dbt run` does.

CHANGE     errors in the query of a model
"""

from __future__ import annotations

from tablestore_engine.api import FixRequest, TablestoreError, Unsupported


class ModelQueryError(TablestoreError):
    """The SQL of a model, or what its config says of it, is refused whatever its inputs hold."""


class FixModelQuery(FixRequest, ModelQueryError):
    """TS1836, TS1843, TS1867, TS1870, TS1871, TS1872: change the SQL or the config."""


class UnsupportedModelQuery(Unsupported, ModelQueryError):
    """TS1844: the query is not supported over a stream."""
