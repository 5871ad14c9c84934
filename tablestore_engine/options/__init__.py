"""The one table of table options: parser, validator and documentation in one place."""

from tablestore_engine.options.parse import (
    OptionSet,
    StatsMode,
    check_options,
    is_credential,
    parse_duration_ms,
    parse_size_bytes,
    parse_stats_mode,
)
from tablestore_engine.options.table import (
    GIVEN_ONCE,
    MERGE_ENGINES,
    OPTIONS,
    REFUSED,
    Option,
    OptionType,
    Scope,
    is_of_log,
)

__all__ = [
    "GIVEN_ONCE",
    "MERGE_ENGINES",
    "OPTIONS",
    "REFUSED",
    "Option",
    "OptionSet",
    "OptionType",
    "Scope",
    "StatsMode",
    "check_options",
    "is_credential",
    "is_of_log",
    "parse_duration_ms",
    "parse_size_bytes",
    "parse_stats_mode",
]
