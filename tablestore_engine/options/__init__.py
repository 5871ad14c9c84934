"""The one table of table options: parser, validator and documentation in one place."""

from tablestore_engine.options.field_options import (
    AGGREGATE_FUNCTIONS,
    DEFAULT_FUNCTION,
    FieldKey,
    FieldOptions,
    parse_field_key,
)
from tablestore_engine.options.parse import (
    OptionSet,
    StatsMode,
    check_expiration_strategy,
    check_options,
    current_names,
    is_credential,
    parse_duration_ms,
    parse_size_bytes,
    parse_stats_mode,
    stored_text,
)
from tablestore_engine.options.table_options import (
    GIVEN_ONCE,
    MERGE_ENGINES,
    OPTIONS,
    REFUSED,
    Option,
    OptionType,
    Scope,
    column_of_index_option,
    is_of_log,
)
from tablestore_engine.options.time_format import DEFAULT_FORMAT, TimeFormat, parse_time_format
