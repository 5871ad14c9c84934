"""Random expressions and conditions over the columns in scope: exact values, the same in Spark and in DuckDB."""

from __future__ import annotations

import random
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from integration_tests.soak.query_attack.relation import NUMBERS, REALS, Ref


@dataclass(frozen=True)
class Expr:
    """`ref`: set where it is a plain column."""

    text: str
    type: str
    null: bool
    deps: frozenset[int]
    derived: bool
    ref: Ref | None = None


def plain(ref: Ref) -> Expr:
    """A column itself."""
    col = ref.col
    return Expr(ref.sql, col.type, col.null, col.deps | {col.ident}, col.derived, ref)


def _over(text: str, kind: str, *refs: Ref, null: bool | None = None) -> Expr:
    deps = frozenset().union(*(one.col.deps or {one.col.ident} for one in refs))
    nulls = any(one.col.null for one in refs) if null is None else null
    return Expr(text, kind, nulls, deps, any(one.col.derived for one in refs))


def literal(rng: random.Random, kind: str) -> str:
    """Of a type, in the range of the data."""
    match kind:
        case "int" | "bigint":
            return str(rng.randint(0, 8))
        case "decimal":
            return rng.choice(("0.50", "3.25", "7.00"))
        case "double":
            return rng.choice(("cast(1.5 as double)", "cast(6 as double)"))
        case "real" | "real_group":
            return rng.choice(("cast(0 as double)", "cast('-0.0' as double)", "cast('NaN' as double)"))
        case "string":
            return rng.choice(("'a'", "'b'", "'k3'", "'k7'", "''"))
        case "date":
            return rng.choice(("date '2024-01-29'", "date '2024-02-01'", "date '2024-02-03'"))
        case _:
            return rng.choice(("true", "false"))


def today(rng: random.Random) -> str:
    """The day of the run, or one near it."""
    return f"([[current_date()||run_day()]] + {rng.randint(-2, 2)})"


def _int(rng: random.Random, ref: Ref) -> Expr:
    x = ref.sql
    text, null = rng.choice(
        ((f"{x} + 1", None), (f"{x} * 2", None), (f"{x} % 3", None), (f"coalesce({x}, 0)", False), (f"-{x}", None),
         (f"nullif({x}, 2)", True), (f"case when {x} > 4 then {x} else 0 end", False), (f"abs({x})", None),
         (f"moved({x})", None))
    )  # fmt: skip
    return _over(text, "bigint" if text.startswith("moved") else ref.col.type, ref, null=null)


def _string(rng: random.Random, ref: Ref) -> Expr:
    x = ref.sql
    text, kind, null = rng.choice(
        ((f"upper({x})", "string", None), (f"lower({x})", "string", None), (f"substr({x}, 1, 1)", "string", None),
         (f"length({x})", "int", None), (f"coalesce({x}, 'none')", "string", False), (f"{x} || '!'", "string", None),
         (f"case {x} when 'a' then 1 when 'b' then 2 end", "int", True), (f"nullif({x}, 'a')", "string", True))
    )  # fmt: skip
    return _over(text, kind, ref, null=null)


def _date(rng: random.Random, ref: Ref) -> Expr:
    x = ref.sql
    text, kind, null = rng.choice(
        ((f"month({x})", "int", None), (f"cast(date_trunc('month', {x}) as date)", "date", None),
         (f"coalesce({x}, date '2024-02-01')", "date", False), (f"cast({x} as string)", "string", None),
         (f"[[datediff(current_date(), {x})||date_diff('day', {x}, run_day())]]", "int", None))
    )  # fmt: skip
    return _over(text, kind, ref, null=null)


def _real(rng: random.Random, ref: Ref) -> Expr:
    """As text, the zeros of a table's column are two values."""
    x, kind = ref.sql, ref.col.type
    forms = [(f"{x} * 2", kind, None), (f"coalesce({x}, cast(0 as double))", kind, False)]
    if kind == "real":
        forms += [(f"upper(cast({x} as string))", "string", None)] * 2
    text, result, null = rng.choice(forms)
    return _over(text, result, ref, null=null)


def _other(rng: random.Random, ref: Ref) -> Expr:
    x, kind = ref.sql, ref.col.type
    if kind == "decimal":
        text, null = rng.choice(((f"{x} * 2", None), (f"coalesce({x}, 0.00)", False), (f"-{x}", None)))
        return _over(text, "decimal", ref, null=null)
    if kind == "timestamp":
        return _over(f"cast({x} as date)", "date", ref)
    if kind == "boolean":
        text, null = rng.choice(((f"not {x}", None), (f"coalesce({x}, false)", False)))
        return _over(text, "boolean", ref, null=null)
    return _over(f"{x} * 2", kind, ref)


_OF_TYPE: dict[str, Callable[[random.Random, Ref], Expr]] = {
    "int": _int, "bigint": _int, "string": _string, "date": _date,
    "real": _real, "real_group": _real,
}  # fmt: skip


def computed(rng: random.Random, refs: Sequence[Ref]) -> Expr:
    """Not a plain column."""
    ref = rng.choice(refs)
    others = [one for one in refs if one.col.type == ref.col.type and one is not ref]
    if others and rng.random() < 0.4:
        other = rng.choice(others)
        forms = [
            f"coalesce({ref.sql}, {other.sql})",
            f"case when {ref.sql} is null then {other.sql} else {ref.sql} end",
        ]
        if ref.col.type in NUMBERS:
            forms += [f"{ref.sql} + {other.sql}", f"greatest({ref.sql}, {other.sql})"]
        text = rng.choice(forms)
        if ref.col.type in REALS and rng.random() < 0.3:
            return _over(f"greatest({ref.sql}, {other.sql})", "real_group", ref, other, null=True)
        return _over(text, ref.col.type, ref, other, null=True)
    return _OF_TYPE.get(ref.col.type, _other)(rng, ref)


def expression(rng: random.Random, refs: Sequence[Ref]) -> Expr:
    """Plain or computed."""
    return plain(rng.choice(refs)) if rng.random() < 0.5 else computed(rng, refs)


def condition(rng: random.Random, refs: Sequence[Ref]) -> tuple[str, bool]:
    """A predicate, and whether it reads a derived column."""
    if rng.random() < 0.25:
        (left, one), (right, two) = condition(rng, refs), condition(rng, refs)
        return rng.choice((f"({left} or {right})", f"({left} and {right})", f"not ({left})")), one or two
    ref = rng.choice(refs)
    return _condition(rng, ref, refs), ref.col.derived


def caseless(one: str, other: str) -> str:
    """Equal under a collation without case: never shown, for equal texts are not the same text."""
    return f"{one} [[collate utf8_lcase||collate nocase]] = {other} [[collate utf8_lcase||collate nocase]]"


def _condition(rng: random.Random, ref: Ref, refs: Sequence[Ref]) -> str:
    x, kind = ref.sql, ref.col.type
    others = [one.sql for one in refs if one.col.type == kind and one is not ref and not one.col.derived]
    roll = rng.random()
    if roll < 0.15:
        return f"{x} is {rng.choice(('', 'not '))}null"
    if roll < 0.35 and others:
        return f"{x} {rng.choice(('=', '<>', '<', '<=', 'is not distinct from'))} {rng.choice(others)}"
    if kind == "timestamp" and roll < 0.6:
        return f"{x} {rng.choice(('<', '<=', '>', '>='))} [[localtimestamp()||run_moment()]]"
    if kind == "date" and roll < 0.6:
        return f"{x} {rng.choice(('<', '<=', '>', '>='))} {today(rng)}"
    if kind == "timestamp":
        return f"cast({x} as date) {rng.choice(('<', '>='))} {literal(rng, 'date')}"
    if kind == "boolean":
        return rng.choice((x, f"not {x}", f"{x} is not true", f"coalesce({x}, false)"))
    if kind == "string" and roll < 0.4:
        return caseless(x, literal(rng, kind))
    if kind == "string" and roll < 0.6:
        return rng.choice((f"{x} like 'a%'", f"{x} in ('a', 'b', 'k2', 'k5')", f"{x} not in ('a', 'k1')"))
    if kind in ("int", "bigint") and roll < 0.6:
        return rng.choice(
            (f"{x} between 1 and 6", f"{x} in (1, 3, 5, 7)", f"{x} % 2 = 0", f"coalesce({x}, 0) < 6")
        )
    return f"{x} {rng.choice(('<', '<=', '>', '>=', '<>', '<>'))} {literal(rng, kind)}"
