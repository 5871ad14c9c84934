"""Write the generated pages: docs/errors.md from the raises, docs/options.md from the option table, the names in
docs/python-api.md from docstrings; docs/where.md from the CHANGE lines of module heads; the section of
docs/reliability.md on the last recorded runs of the chaos suite and of the nightly parts, from docs/chaos.json and
docs/nightly.json; the tables
of engines in docs/engines.md, from docs/engines.json; docs/features.md from docs/feature_rows.py;
docs/interop.md from docs/interop.json; and cli/completion.json, from the parsers of the commands.

Steps      1 parse every module   2 find calls of the error classes with a literal code   3 print them by code
Change     `CHANGE     which snapshots expire (option a, b)` in a module head is a line of docs/where.md.
INVARIANT  a page is a function of the code alone, the section of its JSON; tests/house/test_errors.py fails when one
           is stale.
"""

from __future__ import annotations

import ast
import json
import re
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

from docs.api_examples import render_python_api
from docs.engine_tables import engine_lines
from docs.feature_table import render_features
from docs.interop_table import render_interop
from docs.nightly_table import nightly_lines
from integration_tests.run import NIGHTLY
from tablestore_engine.cli.argument_tree import describe_parser, render_tree
from tablestore_engine.cli.main import find_registers, make_parser
from tablestore_engine.format.capability import CAPABILITIES
from tablestore_engine.options import OPTIONS, OptionType
from tablestore_engine.options.not_built import NOT_BUILT
from tablestore_engine.options.paimon_keys import CATALOG_KEYS, PAIMON_KEYS, PREFIXES

ROOT = Path(__file__).resolve().parent.parent
PACKAGES = ("tablestore_engine", "tablestore_demo", "dbt/adapters/tablestore")
COMPLETION = ROOT / "tablestore_engine/cli/completion.json"
CODE_LENGTH = len("TS0000")
CHAOS_BEGIN, SECTION_END = "<!-- chaos: written by make docs -->\n", "<!-- end -->\n"
NIGHTLY_BEGIN = "<!-- nightly: written by make docs -->\n"
ENGINES_BEGIN = "<!-- engines: written by make docs -->\n"
CHANGE = re.compile(r"^CHANGE +(.+(?:\n {6,}.+)*)", re.MULTILINE)
NAMES_BEGIN = "<!-- names: written by make docs -->"
_CHAOS_PARTS = {
    "faults": "broker killed, processes stopped and woken later, full disk, all connections cut",
    "network": "faults of the network",
    "requests": "requests that they hit",
    "accidents": "topics that were deleted, refused and set right",
    "errors that passed": "errors after which the processes retried",
}
_CHAOS_FOUND = {
    "lost": "rows lost",
    "doubled": "rows doubled (transactional)",
    "wrong": "rows wrong after normalize",
}
_CHAOS_CHECKED = {
    "snapshots": "snapshots replayed from their commands",
    "acknowledged": "acknowledged commits, each found",
    "messages": "messages in the topics at the end of each five tables",
    "sent again or taken back": "of them sent again or taken back (eventual)",
    "told by readers": "rows that our readers computed from the logs",
    "starts without a boundary": "starts at a snapshot without a boundary offset (eventual log), refused (TS1356)",
}
HINTS = {
    "RetryError": "try again",
    "Stopped": "try again",
    "FixRequest": "change the call or the configuration",
    "NotFound": "name something that exists",
    "FixData": "correct the rows",
    "Unsupported": "not supported (yet)",
    "OutcomeUnknown": "read back before anything else",
    "Fenced": "another process took over",
    "EngineBug": "report it",
}


@dataclass(frozen=True, order=True)
class RaisedError:
    """One raise: the code, its class, where, and its three texts with placeholders in braces."""

    code: str
    kind: str
    module: str
    what: str
    why: str
    fix: str


def _text(node: ast.expr | None) -> str:
    """Source text of a message; expressions inside an f-string show as {name}."""
    match node:
        case ast.Constant(value=str(value)):
            return value
        case ast.JoinedStr(values=values):
            return "".join(_text(value) for value in values)
        case ast.FormattedValue(value=value):
            return "{" + ast.unparse(value).split("(")[0].split(".")[-1].split("[")[0] + "}"
        case ast.BinOp(left=left, right=right):
            return _text(left) + _text(right)
        case None:
            return ""
        case _:
            return "{…}"


@cache
def collect_errors() -> tuple[RaisedError, ...]:
    """Every construction of an error class with a literal code, sorted by code."""
    found: set[RaisedError] = set()
    for package in PACKAGES:
        for path in sorted((ROOT / package).rglob("*.py")):
            for node in ast.walk(ast.parse(path.read_text())):
                if not isinstance(node, ast.Call) or not node.args:
                    continue
                name = (
                    node.func.attr if isinstance(node.func, ast.Attribute) else getattr(node.func, "id", "")
                )
                first = node.args[0]
                if not (
                    isinstance(first, ast.Constant)
                    and isinstance(first.value, str)
                    and first.value[:2] == "TS"
                ):
                    continue
                if len(first.value) != CODE_LENGTH or not first.value[2:].isdigit():
                    continue
                words = {word.arg: word.value for word in node.keywords}
                what = node.args[1] if len(node.args) > 1 else words.get("what")
                module = str(path.relative_to(ROOT)).removesuffix(".py").replace("/", ".")
                found.add(
                    RaisedError(
                        first.value,
                        name,
                        module,
                        _text(what),
                        _text(words.get("why")),
                        _text(words.get("fix")),
                    )
                )
    return tuple(sorted(found))


def render_errors() -> str:
    """The page of all error codes."""
    lines = [
        "# Errors",
        "",
        "Generated by `make docs` from the raises in the code. Words in braces are filled in.",
        "",
        "Where an error speaks of publishing, staged rows or tests: with `publish='auto'`, the default, a model waits",
        "for its data tests when the same invocation runs one of them (`dbt build`, and `dbt retry` of it), and is",
        "published at once otherwise (`dbt run`, a `dbt build` without them). All policies, what a green test means:",
        "[publishing.md](publishing.md#when-a-model-is-gated).",
        "",
    ]
    seen = ""
    for error in collect_errors():
        if error.code != seen:
            lines += [f"## {error.code}", ""]
            seen = error.code
        action = _hint(error.kind)
        lines += [f"- {error.what} — *{action}* (`{error.module}`)"]
        lines += [f"  - why: {error.why}"] if error.why else []
        lines += [f"  - next: {error.fix}"] if error.fix else []
        lines += [""]
    return "\n".join(lines)


def _hint(kind: str) -> str:
    """What the caller must do, by the class of the error or the nearest class above it that has a hint."""
    while kind not in HINTS and kind in _bases():
        kind = _bases()[kind]
    return HINTS.get(kind, "see the text")


@cache
def _bases() -> Mapping[str, str]:
    """{class: its first base} of every module."""
    return {
        node.name: node.bases[0].id
        for package in PACKAGES
        for path in (ROOT / package).rglob("*.py")
        for node in ast.walk(ast.parse(path.read_text()))
        if isinstance(node, ast.ClassDef) and node.bases and isinstance(node.bases[0], ast.Name)
    }


def render_options() -> str:
    """The page of all table options."""
    lines = [
        "# Table options",
        "",
        "Generated by `make docs` from `tablestore_engine/options/table_options.py`. Set them through the model config",
        "or `table_properties`, `TBLPROPERTIES` in SQL, or `options=` in Python.",
        "",
        "An unknown key is refused with the nearest known one (TS1006). These keys are stored for other programs:",
        "",
        f"- the {len(PAIMON_KEYS)} options of Apache Paimon in `tablestore_engine/options/paimon_keys.py`",
        f"- keys that begin with {', '.join(f'`{prefix}`' for prefix in PREFIXES)}; use `meta.` for notes of your own",
        f"- {', '.join(f'`{key}`' for key in sorted(CATALOG_KEYS))}, which the catalogs of Spark and Hive write",
        "",
        "A table of another engine may already have an unknown option. It stays readable and can be altered.",
        "",
        "| option | type | default | may change | meaning |",
        "|---|---|---|---|---|",
    ]
    for option in OPTIONS.values():
        words = option.values if option.type is OptionType.ENUM else (option.type.value, *option.values)
        kind = " / ".join(words)
        default = "–" if option.default is None else f"`{option.default}`"
        once = ", ".join(f"`{old}`" for old in option.old_keys)
        name = f"`{option.key}`" + (f" (once {once})" if once else "")
        changes = "yes" if option.mutable else "no"
        lines.append(f"| {name} | {kind} | {default} | {changes} | {option.doc} |")
    return "\n".join([*lines, *_refused_options(), *_features()]) + "\n"


def _refused_options() -> list[str]:
    return [
        "",
        "## Options of Paimon that are refused",
        "",
        "They would have no effect here. `*` stands for the rest of a key.",
        "",
        "| keys | why | instead |",
        "|---|---|---|",
        *(f"| `{_key_text(one.keys)}` | {one.why} | {one.fix.replace('|', '/')} |" for one in NOT_BUILT),
    ]


def _key_text(pattern: str) -> str:
    """A regular expression of keys as a reader would write it."""
    text = re.sub(r"\(\?!.*?\\Z\)", "", pattern)
    for part, word in (
        ("\\.", "\0"),
        (".+", "*"),
        (".*", "*"),
        ("(\0*)?", "*"),
        ("?", ""),
        ("|", " / "),
        ("\0", "."),
    ):
        text = text.replace(part, word)
    return text


def _features() -> list[str]:
    """Of tables that other engines made."""
    return [
        "",
        "## Features of tables of other engines",
        "",
        "A table with one of these is refused with its name (TS1126, TS1127). All other features are read and written.",
        "A data file that is no Parquet file is refused when it is read (TS1128).",
        "[`tablestore convert`](engines.md#tables-that-flink-has-created) changes one of them:",
        "the changelog producer.",
        "",
        "| feature | read | written | reason |",
        "|---|---|---|---|",
        *(
            f"| {one.feature} | {'yes' if one.read else 'no'} | {'yes' if one.write else 'no'} | {one.why} |"
            for one in CAPABILITIES
        ),
    ]


def change_lines() -> Mapping[Path, str]:
    """What is decided or done in a module, of each module whose head has a CHANGE line."""
    modules = [path for package in PACKAGES for path in sorted((ROOT / package).rglob("*.py"))]
    texts = ((path, text) for path in modules if CHANGE.search(text := path.read_text()))
    heads = {path: CHANGE.findall(ast.get_docstring(ast.parse(text)) or "") for path, text in texts}
    return {path: "; ".join(" ".join(one.split()) for one in lines) for path, lines in heads.items() if lines}


def render_where() -> str:
    """The page that says in which module something is changed: a table for each package."""
    lines = [
        "# Where to change what",
        "",
        "Generated by `make docs` from the `CHANGE` lines of module heads. The head has rules and invariants, too.",
        "",
        "Materializations are macros in `dbt/include/tablestore/macros/materializations/`, a file for each.",
        "Macros for packages of others are in `dbt/include/tablestore/macros/packages/`.",
        "The default of each option is in `tablestore_engine/options/table_options.py`.",
        "[ARCHITECTURE.md](../ARCHITECTURE.md) describes the packages.",
    ]
    package = None
    for path, text in sorted(change_lines().items(), key=lambda one: _package(one[0])):
        if _package(path) != package:
            package = _package(path)
            lines += ["", f"## {package}", "", "| to change | file |", "|---|---|"]
        lines.append(f"| {text} | `{path.relative_to(ROOT)}` |")
    return "\n".join(lines) + "\n"


def _package(module: Path) -> str:
    """`adapter`, `demo`, or the part of the engine."""
    top, part, *rest = module.relative_to(ROOT).parts
    names = {"dbt": "adapter", "tablestore_demo": "demo"}
    return names.get(top) or (part if rest else "errors")


def render_api() -> str:
    """docs/python-api.md with its names."""
    page = (ROOT / "docs/python-api.md").read_text()
    return render_python_api(page.partition(NAMES_BEGIN)[0] + NAMES_BEGIN)


def render_reliability() -> str:
    """docs/reliability.md with its sections on the chaos suite and on the nightly run."""
    page = (ROOT / "docs/reliability.md").read_text()
    record = ROOT / "docs/nightly.json"
    nightly = nightly_lines(json.loads(record.read_text()) if record.exists() else {}, tuple(NIGHTLY))
    return _written(_written(page, CHAOS_BEGIN, _chaos_lines()), NIGHTLY_BEGIN, nightly)


def _written(page: str, begin: str, lines: list[str]) -> str:
    before, rest = page.split(begin)
    return before + begin + "\n".join(lines) + SECTION_END + rest.split(SECTION_END, 1)[1]


def render_engines() -> str:
    """docs/engines.md with its tables of engines. Raises ValueError for a cell that nobody knows."""
    cells = json.loads((ROOT / "docs/engines.json").read_text())
    return _written((ROOT / "docs/engines.md").read_text(), ENGINES_BEGIN, engine_lines(cells))


def _chaos_lines() -> list[str]:
    """Of one broker; of three where such a run was recorded."""
    three = ROOT / "docs/chaos-three.json"
    lines = _lines_of_run(json.loads((ROOT / "docs/chaos.json").read_text()))
    if three.exists():
        lines += ["### Three brokers", *_lines_of_run(json.loads(three.read_text()))]
    return lines


def _lines_of_run(run: Mapping[str, Any]) -> list[str]:
    checked = run["checked"]
    versions = ", ".join(f"{name} {number}" for name, number in sorted(run["versions"].items()))
    lines = [
        "",
        f"Seed {run['seed']}, commit {run['commit']}, {run['seconds']:,} s, {run['epochs']} times five tables.",
        "",
        f"{versions}.",
        "",
        "| what | how often |",
        "|---|---|",
        f"| **processes killed** (writers and publishers) | **{run['kills']:,}** |",
    ]
    points = {point: sum(actions.values()) for point, actions in run["points"].items()}
    lines.append(
        f"| of them at a crash point, or stopped there, or taking the broker along | {_listed(points)} |"
    )
    lines += [f"| {what} | {_listed(run[key])} |" for key, what in _CHAOS_PARTS.items()]
    lines.append(
        f"| workers of Spark killed while they sent rows before the commit | {_listed(run['workers of Spark'])} |"
    )
    lines += [f"| **{what}** | **{checked[key]:,}** |" for key, what in _CHAOS_FOUND.items()]
    lines += [f"| {what} | {checked[key]:,} |" for key, what in _CHAOS_CHECKED.items()]
    return [*lines, ""]


def _listed(counts: Mapping[str, int]) -> str:
    return ", ".join(f"{name} {count:,}" for name, count in counts.items()) or "none"


def render_completion() -> str:
    """The arguments of all commands, for the shell (cli/argument_tree.py)."""
    return render_tree(
        {name: describe_parser(name, make_parser(name, one)[0]) for name, one in find_registers().items()}
    )


def main() -> None:
    """Write the pages, and the arguments for the shell's completion."""
    (ROOT / "docs/reliability.md").write_text(render_reliability())
    (ROOT / "docs/engines.md").write_text(render_engines())
    (ROOT / "docs/interop.md").write_text(render_interop())
    (ROOT / "docs/features.md").write_text(render_features())
    (ROOT / "docs/errors.md").write_text(render_errors())
    (ROOT / "docs/options.md").write_text(render_options())
    (ROOT / "docs/where.md").write_text(render_where())
    (ROOT / "docs/python-api.md").write_text(render_api())
    COMPLETION.write_text(render_completion(), "utf-8")


if __name__ == "__main__":
    main()
