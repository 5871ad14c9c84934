"""Shapes of config values: what YAML and Jinja may deliver for a column list, a number, a choice, a map.

INVARIANT  each either returns the value in its one inner form or raises FixRequest TS1811 naming the model and key.
"""

from __future__ import annotations

import difflib
import json
from collections.abc import Mapping, Sequence
from typing import Any

from tablestore_engine.api import FixRequest

_ICEBERG_PLACES = ("table-location", "hadoop-catalog")


def wrong_shape(name: str, key: str, value: object, expected: str) -> FixRequest:
    """FixRequest TS1811."""
    return FixRequest(
        "TS1811",
        f"model {name}: config {key!r} has the wrong form",
        why=f"expected {expected}, got {value!r}",
        fix=f"change {key!r} in config() or in the model's YAML",
    )


def read_columns(name: str, key: str, value: Any) -> tuple[str, ...]:  # noqa: ANN401 - comes from YAML
    """A column or a list of columns, without repetition; empty text and empty list mean none."""
    columns = _read_texts(name, key, value, "a column or a list of columns")
    return tuple(dict.fromkeys(column.strip().strip("`") for column in columns))


def read_predicates(name: str, value: Any) -> tuple[str, ...]:  # noqa: ANN401 - comes from YAML
    return _read_texts(name, "incremental_predicates", value, "a SQL condition or a list of them")


def _read_texts(name: str, key: str, value: Any, expected: str) -> tuple[str, ...]:  # noqa: ANN401 - comes from YAML
    if value is None or value == "":
        return ()
    texts = [value] if isinstance(value, str) else value
    if not isinstance(texts, Sequence) or not all(isinstance(one, str) and one.strip() for one in texts):
        raise wrong_shape(name, key, value, expected)
    return tuple(texts)


def read_text(name: str, key: str, value: Any) -> str | None:  # noqa: ANN401 - comes from YAML
    """A text that is not empty, or None."""
    if value is None:
        return None
    if not isinstance(value, str) or not value.strip():
        raise wrong_shape(name, key, value, "a text")
    return value.strip()


def read_choice(name: str, key: str, values: Mapping[str, Any], choices: Sequence[str], default: str) -> str:
    value = values.get(key)
    if value is None:
        return default
    if value not in choices:
        near = difflib.get_close_matches(str(value), choices, n=1, cutoff=0.0)
        raise wrong_shape(name, key, value, f"one of {', '.join(choices)} (nearest: {near[0]})")
    return str(value)


def check_flag(name: str, key: str, value: Any) -> None:  # noqa: ANN401 - comes from YAML
    if value is not None and not isinstance(value, bool):
        raise wrong_shape(name, key, value, "true or false")


def read_iceberg_storage(name: str, value: Any) -> str | None:  # noqa: ANN401 - comes from YAML
    """The table option of `iceberg_metadata`: true, false or a place; None when absent. Raises FixRequest TS1811."""
    if isinstance(value, bool):
        return "table-location" if value else "disabled"
    if value in (None, *_ICEBERG_PLACES):
        return None if value is None else str(value)
    raise wrong_shape(name, "iceberg_metadata", value, f"true, false, {' or '.join(_ICEBERG_PLACES)}")


def read_mapping(name: str, key: str, value: Any) -> Mapping[str, Any]:  # noqa: ANN401 - comes from YAML
    """A map, empty when absent."""
    if value is None:
        return {}
    if not isinstance(value, Mapping):
        raise wrong_shape(name, key, value, "a map")
    return value


def read_bucket_count(name: str, value: Any) -> str | None:  # noqa: ANN401 - comes from YAML
    """A positive number as text; `auto`: the engine chooses by the first rows; -1 for `dynamic`; None when absent."""
    if value is None:
        return None
    if value in ("auto", "dynamic"):
        return "auto" if value == "auto" else "-1"
    if isinstance(value, bool) or not str(value).isdigit() or int(value) < 1:
        raise wrong_shape(name, "buckets", value, "a positive whole number, 'auto' or 'dynamic'")
    return str(int(value))


def read_word(name: str, key: str, value: Any) -> str | None:  # noqa: ANN401 - comes from YAML
    """A text, or what YAML makes of true and false."""
    return read_text(name, key, text_of(value) if isinstance(value, bool) else value)


def text_of(value: Any) -> str:  # noqa: ANN401 - YAML scalars and lists
    """A value as an option has it: booleans in small letters, lists with commas, or as JSON where maps are in them."""
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, Sequence) and not isinstance(value, str):
        return (
            json.dumps(list(value))
            if any(isinstance(v, Mapping) for v in value)
            else ",".join(map(str, value))
        )
    return str(value)
