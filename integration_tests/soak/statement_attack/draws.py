"""Random INSERT, UPDATE, DELETE and MERGE statements; about half of them have one wrong name.

Each draw knows whether it is right by how it was made, and what DuckDB has to do then: the engine is not asked.
Tables     demo.t with the key id and nested structs, demo.p without a key, partitioned by (dt, h)
"""

from __future__ import annotations

import random
from dataclasses import dataclass, field

INT, TEXT = "int", "string"
PAIR = {"v": INT, "y": INT}
COLUMNS: dict[str, dict[str, object]] = {
    "t": {"id": INT, "v": INT, "w": TEXT, "s": PAIR, "d": {"w": TEXT, "n": PAIR}},
    "p": {"id": INT, "v": INT, "dt": TEXT, "h": INT},
}
PARTITIONS = ("dt", "h")
SOURCE = {"id": INT, "v": INT, "w": TEXT, "z": INT}  # of a MERGE; z is not in the target
DAYS = ("a", "b")
FAULTS = {
    "insert": ("unknown", "repeated", "count", "qualified"),
    "partition": ("unknown", "repeated", "not a partition", "also in the list"),
    "by name": ("unknown", "repeated"),
    "update": ("unknown", "repeated", "qualifier", "field", "part", "condition"),
    "delete": ("condition",),
    "merge update": ("unknown", "repeated", "qualifier", "field", "part", "source"),
    "merge insert": ("unknown", "repeated", "qualifier", "field", "count", "scope"),
    "merge by source": ("unknown", "repeated", "scope"),
}


@dataclass
class Draw:
    """`text` for the engine and for Spark; `duck` does the same in DuckDB. `fault`: what is wrong, None: nothing."""

    kind: str
    text: str
    fault: str | None
    duck: list[str] = field(default_factory=list)


def draw(rng: random.Random) -> Draw:
    """One statement."""
    kind = rng.choice(list(FAULTS))
    fault = rng.choice(FAULTS[kind]) if rng.random() < 0.5 else None
    if kind in ("insert", "partition", "by name"):
        return _insert(rng, kind, fault)
    return {"update": _update, "delete": _delete}.get(kind, _merge)(rng, kind, fault)


def type_text(type_: object) -> str:
    """As Spark writes it."""
    if isinstance(type_, dict):
        return f"struct<{','.join(f'{name}:{type_text(inside)}' for name, inside in type_.items())}>"
    return str(type_)


def _cased(rng: random.Random, name: str) -> str:
    name = name.upper() if rng.random() < 0.2 else name
    return f"`{name}`" if rng.random() < 0.1 else name


def _literal(rng: random.Random, type_: object) -> tuple[str, str]:
    """In Spark's and in DuckDB's words."""
    if isinstance(type_, dict):
        parts = [(name, _literal(rng, inside)) for name, inside in type_.items()]
        spark = ", ".join(f"'{name}', {text}" for name, (text, _) in parts)
        return f"named_struct({spark})", "{" + ", ".join(
            f"'{name}': {text}" for name, (_, text) in parts
        ) + "}"
    text = str(rng.randint(0, 9)) if type_ == INT else f"'{rng.choice('xyz')}'"
    return text, text


def _null(type_: object) -> str:
    return f"cast(null as {type_text(type_)})"


# ---- INSERT ----------------------------------------------------------------------------------------------


def _insert(rng: random.Random, kind: str, fault: str | None) -> Draw:
    table = "p" if kind == "partition" else rng.choice("tp")
    columns = COLUMNS[table]
    static = {name: rng.choice(DAYS) if name == "dt" else str(rng.randint(0, 1)) for name in PARTITIONS}
    spec: list[str] = []
    if kind == "partition":
        spec = rng.choice((["dt"], ["dt", "h"])) if fault != "repeated" else ["dt"]
    dynamic = [name for name in PARTITIONS if name not in spec] if spec else []
    free = [name for name in columns if name not in spec]
    named = kind == "insert" or (kind == "partition" and (rng.random() < 0.4 or fault == "also in the list"))
    chosen = list(free)
    if named or kind == "by name":
        others = [name for name in free if name not in ("id", *dynamic)]
        chosen = ["id", *dynamic, *rng.sample(others, rng.randint(0, len(others)))]
        rng.shuffle(chosen)
    rows = []
    for number in rng.sample(range(1, 9), rng.randint(1, 2)):
        rows.append({n: (str(number),) * 2 if n == "id" else _literal(rng, columns[n]) for n in chosen})
        if table == "p" and "dt" in rows[-1]:
            rows[-1]["dt"] = (f"'{rng.choice(DAYS)}'",) * 2
    names = [_cased(rng, name) for name in chosen]
    values = [[row[name][0] for name in chosen] for row in rows]
    if fault in ("unknown", "qualified") and kind != "partition":
        place = rng.randrange(len(names))
        names[place] = "nope" if fault == "unknown" else f"{table}.{chosen[place]}"
    elif fault in ("repeated", "also in the list") and not (fault == "repeated" and kind == "partition"):
        names.append(rng.choice(chosen) if fault == "repeated" else spec[0])
        values = [[*row, "1"] for row in values]
    elif fault == "count":
        values = [[*row, "1"] for row in values]
    partition = [
        f"{_cased(rng, name)} = " + (f"'{static[name]}'" if name == "dt" else static[name]) for name in spec
    ]
    partition += [_cased(rng, name) for name in dynamic]
    if kind == "partition" and fault in ("unknown", "repeated", "not a partition"):
        partition.append({"unknown": "nope = 1", "repeated": "DT = 'b'", "not a partition": "v = 1"}[fault])
    head = ("overwrite" if (over := rng.random() < 0.3) else "into") + rng.choice((" ", " table "))
    text = f"insert {head}demo.{table}" + (f" partition ({', '.join(partition)})" if partition else "")
    if kind == "by name":
        made = [", ".join(f"{v} as {n}" for v, n in zip(row, names, strict=True)) for row in values]
        text += " by name " + " union all ".join(f"select {one}" for one in made)
    else:
        text += f" ({', '.join(names)})" if named else ""
        made = [", ".join(row) for row in values]
        is_values = rng.random() < 0.5
        text += " values " + ", ".join(f"({one})" for one in made) if is_values else (
            " " + " union all ".join(f"select {one}" for one in made))  # fmt: skip
    return Draw(
        kind, text, fault, _insert_duck(table, rows, {name: static[name] for name in spec}, over=over)
    )


def _insert_duck(
    table: str, rows: list[dict[str, tuple[str, str]]], static: dict[str, str], *, over: bool
) -> list[str]:
    full = [
        [
            f"'{static[name]}'" if name in static else row[name][1] if name in row else "null"
            for name in COLUMNS[table]
        ]
        for row in rows
    ]
    duck: list[str] = []
    if table == "t":
        duck.append(
            "delete from demo.t"
            if over
            else f"delete from demo.t where id in ({', '.join(row[0] for row in full)})"
        )
    elif over and static:
        duck.append("delete from demo.p where " + " and ".join(f"{n} = '{v}'" for n, v in static.items()))
    elif over:
        duck += [f"delete from demo.p where dt is not distinct from {row[2]} and h is not distinct from {row[3]}"
                 for row in full]  # fmt: skip
    return [*duck, f"insert into demo.{table} values " + ", ".join(f"({', '.join(row)})" for row in full)]


# ---- expressions -----------------------------------------------------------------------------------------


def _column(rng: random.Random, columns: dict[str, object], type_: str, qualifiers: tuple[str, ...]) -> str:
    """The name of a column or field of that type; its qualifier is one of those."""
    found: list[str] = []

    def walk(inside: dict[str, object], path: str) -> None:
        for name, one in inside.items():
            if isinstance(one, dict):
                walk(one, f"{path}{name}.")
            elif one == type_:
                found.append(f"{path}{name}")

    walk(columns, "")
    name = ".".join(_cased(rng, part).replace("`", "") for part in rng.choice(found).split("."))
    return rng.choice(qualifiers) + name


def _value(rng: random.Random, columns: dict[str, object], type_: str, qualifiers: tuple[str, ...]) -> str:
    if rng.random() < 0.3:
        return _literal(rng, type_)[0]
    name = _column(rng, columns, type_, qualifiers)
    return rng.choice((name, f"{name} + 1" if type_ == INT else f"{name} || 'q'"))


def _condition(rng: random.Random, columns: dict[str, object], qualifiers: tuple[str, ...]) -> str:
    return f"{_column(rng, columns, INT, qualifiers)} {rng.choice(('<', '>='))} {rng.randint(1, 8)}"


# ---- SET -------------------------------------------------------------------------------------------------

Paths = dict[tuple[str, ...], tuple[str, str]]  # path → value in both dialects
TARGETS: tuple[tuple[tuple[str, ...], object], ...] = (
    (("v",), INT), (("w",), TEXT), (("s",), PAIR), (("s", "v"), INT), (("s", "y"), INT), (("d", "w"), TEXT),
    (("d", "n"), PAIR), (("d", "n", "v"), INT), (("d", "n", "y"), INT),
)  # fmt: skip


def _assignments(
    rng: random.Random, columns: dict[str, object], qualifiers: tuple[str, ...], *, tops: bool = False
) -> Paths:
    """Values for paths of which none holds another."""
    chosen: Paths = {}
    for path, type_ in rng.sample(TARGETS, rng.randint(1, 4)):
        if (tops and len(path) > 1) or any(
            path[: len(one)] == one or one[: len(path)] == path for one in chosen
        ):
            continue
        if isinstance(type_, str):
            text = _value(rng, columns, type_, qualifiers)
            chosen[path] = (text, text)
        else:
            chosen[path] = _literal(rng, type_)
    return chosen or {("v",): ("5", "5")}


def _set_text(rng: random.Random, paths: Paths, qualifiers: tuple[str, ...], fault: str | None) -> str:
    pairs = [
        (rng.choice(qualifiers) + ".".join(_cased(rng, one) for one in path), value)
        for path, (value, _) in paths.items()
    ]
    path = rng.choice(list(paths))
    wrong = {
        "unknown": "nope",
        "repeated": ".".join(path).upper(),
        "qualifier": f"nosuch.{path[0]}",
        "source": f"q.{path[0]}",
        "field": "s.nope",
        "part": "s" if path[0] == "s" and len(path) > 1 else path[0] + ".v" if path == ("s",) else "v",
    }
    if fault in wrong:
        pairs.insert(rng.randint(0, len(pairs)), (wrong[fault], "null"))
        if fault == "part" and wrong["part"] == "v":
            pairs += [("d.n.v", "1"), ("d.n", "null")]
    return ", ".join(f"{name} = {value}" for name, value in pairs)


def _set_duck(paths: Paths, qualifier: str) -> str:
    """Whole columns: DuckDB sets no fields."""

    def made(path: tuple[str, ...], type_: object) -> str:
        if path in paths:
            return paths[path][1]
        if isinstance(type_, dict) and any(one[: len(path)] == path for one in paths):
            return (
                "{"
                + ", ".join(f"'{name}': {made((*path, name), inside)}" for name, inside in type_.items())
                + "}"
            )
        return qualifier + ".".join(path)

    tops = dict.fromkeys(path[0] for path in paths)
    return ", ".join(f"{name} = {made((name,), COLUMNS['t'][name])}" for name in tops)


def _alias(rng: random.Random) -> tuple[str, tuple[str, ...], str]:
    """The text of an alias, the qualifiers that are right then, and one that is wrong."""
    if rng.random() < 0.5:
        return rng.choice((" x", " as x")), ("", "x."), "t."
    return "", ("", "t.", "demo.t."), "x."


def _update(rng: random.Random, kind: str, fault: str | None) -> Draw:
    alias, qualifiers, wrong = _alias(rng)
    paths = _assignments(rng, COLUMNS["t"], qualifiers)
    condition = _condition(rng, COLUMNS["t"], (wrong,) if fault == "condition" else qualifiers)
    where = f" where {condition}" if fault == "condition" or rng.random() < 0.8 else ""
    text = f"update demo.t{alias} set {_set_text(rng, paths, qualifiers, fault)}{where}"
    return Draw(kind, text, fault, [f"update demo.t{alias} set {_set_duck(paths, qualifiers[1])}{where}"])


def _delete(rng: random.Random, kind: str, fault: str | None) -> Draw:
    alias, qualifiers, wrong = _alias(rng)
    text = (
        f"delete from demo.t{alias} where {_condition(rng, COLUMNS['t'], (wrong,) if fault else qualifiers)}"
    )
    text += f" and {_condition(rng, COLUMNS['t'], qualifiers)}"
    return Draw(kind, text, fault, [text])


# ---- MERGE -----------------------------------------------------------------------------------------------


def _merge(rng: random.Random, kind: str, fault: str | None) -> Draw:
    ids = rng.sample(range(1, 12), rng.randint(1, 4))
    rows = " union all ".join(
        f"select {number} as id, {rng.randint(0, 9)} as v, '{rng.choice('klm')}' as w, {rng.randint(0, 9)} as z"
        for number in ids
    )
    head = f"merge into demo.t as x using ({rows}) as q on x.id = q.id"
    spark, duck = [head], [head]
    kinds = [
        one
        for one in ("merge update", "merge insert", "merge by source")
        if one == kind or rng.random() < 0.4
    ]
    for one in kinds:
        text, other = _CLAUSES[one](rng, fault if one == kind else None)
        spark.append(text)
        duck.append(other)
    return Draw(kind, " ".join(spark), fault, [" ".join(duck)])


def _matched(rng: random.Random, fault: str | None) -> tuple[str, str]:
    columns = {**COLUMNS["t"]} if rng.random() < 0.5 else {**SOURCE}
    qualifiers = ("x.",) if "s" in columns else ("q.",)
    when = "when matched" + (f" and {_condition(rng, columns, qualifiers)}" if rng.random() < 0.5 else "")
    if fault is None and rng.random() < 0.2:
        return f"{when} then delete", f"{when} then delete"
    paths = _assignments(rng, columns, qualifiers)
    text = f"{when} then update set {_set_text(rng, paths, ('', 'x.'), fault)}"
    return text, f"{when} then update set {_set_duck(paths, 'x.')}"


def _not_matched(rng: random.Random, fault: str | None) -> tuple[str, str]:
    scope = rng.choice(("condition", "value")) if fault == "scope" else None
    condition = _condition(rng, SOURCE, ("x.",) if scope == "condition" else ("q.",))
    when = "when not matched" + (f" and {condition}" if scope == "condition" or rng.random() < 0.5 else "")
    paths = {("id",): ("q.id", "q.id"), **_assignments(rng, SOURCE, ("q.",), tops=True)}
    names = [rng.choice(("", "x.")) + _cased(rng, path[0]) for path in paths]
    values = [value for value, _ in paths.values()]
    wrong = {
        "unknown": "nope",
        "repeated": "V" if ("v",) in paths else "ID",
        "qualifier": "q.v",
        "field": "s.v",
    }
    if fault in wrong:
        names.append(wrong[fault])
    if fault in wrong or fault == "count":
        values.append("1")
    if scope == "value":
        values[rng.randrange(len(values))] = "x.id"
    ours = [path[0] for path in paths]
    given = ", ".join(other for _, other in paths.values())
    other = f"{when} then insert ({', '.join(ours)}) values ({given})"
    when, values = (_maybe_plain(rng, when, "q."), [_maybe_plain(rng, value, "q.") for value in values])
    return f"{when} then insert ({', '.join(names)}) values ({', '.join(values)})", other


def _maybe_plain(rng: random.Random, text: str, qualifier: str) -> str:
    """Without the qualifier: one side alone is seen there. DuckDB sees both."""
    return text.replace(qualifier, "") if rng.random() < 0.5 else text


def _by_source(rng: random.Random, fault: str | None) -> tuple[str, str]:
    columns, qualifier = (SOURCE, "q.") if fault == "scope" else (COLUMNS["t"], "x.")
    when = f"when not matched by source and {_condition(rng, columns, (qualifier,))}"
    paths = _assignments(rng, COLUMNS["t"], ("x.",))
    other = f"{when} then update set {_set_duck(paths, 'x.')}"
    plain = {path: (_maybe_plain(rng, spark, "x."), duck) for path, (spark, duck) in paths.items()}
    return (
        f"{_maybe_plain(rng, when, 'x.')} then update set {_set_text(rng, plain, ('', 'x.'), fault)}",
        other,
    )


_CLAUSES = {"merge update": _matched, "merge insert": _not_matched, "merge by source": _by_source}
