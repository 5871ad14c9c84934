"""A Python model by incremental_strategy='changed_keys': SQL of the keys of its inputs, and of their rows.

CHANGE     how `affected_by` restricts the inputs of a Python model
Rule       `affected_by` says by which expressions the rows of an input belong to keys of the result. The query of all
           keys stands for the model where changes are followed: the engine proves which keys a changed row has, also
           through views. Inputs that it does not name are read whole, so their changes concern all keys.
INVARIANT  pure text. Nothing proves that the code obeys its declaration; what can be checked is checked: no row of a
           restricted run has another key.
"""

from __future__ import annotations

import ast
from collections.abc import Sequence
from dataclasses import dataclass

from dbt.adapters.tablestore.config.changed_keys_config import Affected
from dbt.adapters.tablestore.plan.changed_keys_sql import KeysSelect
from dbt.adapters.tablestore.plan.select_sql import quote

_PLACE, _SHOWN = "__ts_key_", 3
_ROW = "cast(struct(*) as string)"  # the code sees all columns, so a change of any of them is a change of the row


@dataclass(frozen=True)
class KeyedInputs:
    """`key`: columns of the result. `by`: input, as SQL names it → the expressions of the key. `whole`: the others."""

    key: tuple[str, ...]
    by: tuple[tuple[str, tuple[str, ...]], ...]
    whole: tuple[str, ...]

    @property
    def names(self) -> tuple[str, ...]:
        """Of all inputs."""
        return (*(name for name, _ in self.by), *self.whole)

    @property
    def query(self) -> str:
        """All keys, each with all values of the row that has it; its plan reads all inputs."""
        parts = "\nunion all\n".join(
            self._keys_of(name, items, self.key, f"{_ROW} as __ts_row, ") for name, items in self.by
        )
        if not self.whole:
            return parts
        return (
            f"select * from (\n{parts}\n) k cross join (\n"
            f"select max(__ts_row) as __ts_rows from (\n{self.whole_query}\n)\n) w"
        )

    @property
    def whole_query(self) -> str:
        """Reads the inputs that are read whole."""
        return "\nunion all\n".join(f"select {_ROW} as __ts_row from {name}" for name in self.whole)

    def rows_of(self, name: str, keys: KeysSelect) -> str:
        """Of an input: those of these keys, or all."""
        expressions = dict(self.by).get(name)
        if expressions is None:
            return f"select * from {name}"
        places = [f"{_PLACE}{at}" for at in range(len(self.key))]
        keyed = self._keys_of(name, expressions, places, "*, ")
        same = self._same(keys, [f"r.{one}" for one in places])
        rows = f"select r.* except ({', '.join(places)}) from (\n{keyed}\n) r"
        return f"{rows} left semi join (\n{keys.sql}\n) a on {same}"

    def strange(self, rows: str, keys: KeysSelect) -> str:
        """Keys of `rows` that are none of these, some of them."""
        columns = [f"r.{quote(one)}" for one in self.key]
        same = self._same(keys, columns)
        return f"select {', '.join(columns)} from {rows} r left anti join (\n{keys.sql}\n) a on {same} limit {_SHOWN}"

    def _same(self, keys: KeysSelect, columns: Sequence[str]) -> str:
        return " and ".join(
            f"{column} {'<=>' if name in keys.nullable else '='} a.{quote(name)}"
            for column, name in zip(columns, self.key, strict=True)
        )

    @staticmethod
    def _keys_of(name: str, expressions: Sequence[str], columns: Sequence[str], rest: str) -> str:
        items = ", ".join(
            f"({one}\n) as {quote(column)}" for one, column in zip(expressions, columns, strict=True)
        )
        return f"select {rest}{items} from {name}"


def keyed_inputs(inputs: Sequence[str], affected: Affected) -> KeyedInputs:
    """`inputs`: as SQL names them. A name in `affected_by` is that of a table or view, with or without its schema."""
    found = {name: affected.find(plain_name(name)) for name in inputs}
    by = tuple((name, items) for name, items in found.items() if items is not None)
    return KeyedInputs(affected.key, by, tuple(name for name, items in found.items() if items is None))


def plain_name(name: str) -> str:
    """Without quotes: schema.table."""
    return name.replace("`", "")


def inputs_of(compiled: str) -> tuple[str, ...]:
    """What dbt.ref() and dbt.source() may give in a model, as SQL names it: the tables in dbt's part of the text."""
    found = dict[str, None]()
    for function in ast.parse(compiled).body:
        if isinstance(function, ast.FunctionDef) and function.name in ("ref", "source"):
            names = _first_mapping(function)
            found |= dict.fromkeys(names)
    return tuple(found)


def _first_mapping(function: ast.FunctionDef) -> Sequence[str]:
    for step in function.body:
        if isinstance(step, ast.Assign) and isinstance(step.value, ast.Dict):
            return [str(one) for one in ast.literal_eval(step.value).values()]
    return ()
