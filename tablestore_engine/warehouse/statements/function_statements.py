"""Statements about SQL functions: CREATE, DROP, DESCRIBE, and the list of SHOW FUNCTIONS.

INVARIANT  Spark has analysed a function's body before the warehouse has the function.
"""

from __future__ import annotations

from tablestore_engine.catalog.functions import FunctionDefinition
from tablestore_engine.catalog.identifier import Identifier
from tablestore_engine.catalog.resolved_names import ResolvedFunction
from tablestore_engine.errors import FixRequest, NotFound
from tablestore_engine.spark.fetch_rows import Fetched
from tablestore_engine.sql import statement as sql
from tablestore_engine.warehouse.statements.running_statement import RunningStatement, StatementResult


def create_function(run: RunningStatement, s: sql.CreateFunction) -> StatementResult:
    """CREATE FUNCTION: Spark analyses the body, the text is kept. Raises NotFound TS1405, FixRequest TS1460."""
    place, actions = run.place(s.name), run.actions
    actions.check_schema(place[0])
    if not s.replace and actions.find_function(Identifier(*place)) is not None:
        if s.if_not_exists:
            return StatementResult()
        raise FixRequest(
            "TS1460",
            f"function {s.name} exists already",
            why="CREATE FUNCTION without OR REPLACE or IF NOT EXISTS",
            fix="add one of them, or drop it first: DROP FUNCTION",
        )
    given = ResolvedFunction(s.definition, s.is_deterministic is False, is_own=True)
    run.resolver.check_new(place, given, run.overrides)
    actions.put_function(Identifier(*place), FunctionDefinition(s.definition))
    return StatementResult()


def drop_function(run: RunningStatement, s: sql.DropFunction) -> StatementResult:
    """DROP FUNCTION. Raises NotFound TS1461."""
    identifier = Identifier(*run.place(s.name))
    if not run.actions.has_function(identifier):
        if s.if_exists:
            return StatementResult()
        raise _missing(s.name)
    run.actions.drop_function(identifier)
    return StatementResult()


def describe_function(run: RunningStatement, s: sql.DescribeFunction) -> StatementResult:
    """DESCRIBE FUNCTION, in the lines that Spark gives. Raises NotFound TS1461."""
    identifier = Identifier(*run.place(s.name))
    found = run.actions.find_function(identifier)
    if found is None:
        raise _missing(s.name)
    one = found.parsed(identifier)
    inputs = ", ".join(
        f"{item.name} {item.type_text}" + (f" DEFAULT {item.default}" if item.default else "")
        for item in one.parameters
    )
    facts = [
        ("Function", f"{identifier.database}.{identifier.name.lower()}"),
        ("Type", "TABLE" if one.is_table else "SCALAR"),
        ("Input", inputs or "()"),
        ("Returns", one.returns or "inferred from the body"),
    ]
    if one.comment is not None:
        facts.append(("Comment", one.comment))
    if one.is_deterministic is not None:
        facts.append(("Deterministic", str(one.is_deterministic).lower()))
    if s.extended:
        facts.append(("Body", one.body))
    lines = tuple((f"{name + ':':<15}{text}",) for name, text in facts)
    return StatementResult(Fetched((("function_desc", "string"),), lines))


def _missing(name: sql.TableName) -> NotFound:
    return NotFound(
        "TS1461",
        f"function {name} does not exist",
        why="no function of that name is in the warehouse",
        fix=f"check the spelling; SHOW FUNCTIONS IN {name.database} lists the functions of the schema",
    )
