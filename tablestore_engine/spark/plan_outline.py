"""What an analysed plan reads of us, from one text of it: a call for the text instead of some for every node.

CHANGE     whether a Spark plan filters a table
Steps      each line is a node, its depth the length of its prefix; two more than its parent's: inside a subquery
           → relations of ours with the filter of dead rows above, and the table of words that this filter reads
INVARIANT  it decides only what is worth looking at. Nodes are fetched by number and must have the text that was seen
           here (a line break in a literal moves the numbers): else nothing is done.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

from tablestore_engine.spark.plan_conditions import HIDDEN_DATABASE

_LINE = re.compile(r"(\d+) ((?:[: ]  )*(?:[:+]- )?)(.*)", re.DOTALL)
_RELATION = re.compile(rf"Relation (?:\w+\.)?{HIDDEN_DATABASE}\.(\w+)\[(.*)", re.DOTALL)
_FILES, _WORDS = "f_", "m_"  # how names of hidden tables begin
_ALIVE = re.compile(r"Filter \((?:cast\()?getbit\(get\(scalar-subquery#")  # as the view has it, see view_sql
_ASKING = re.compile(r"(?:Filter|(?:Lateral)?Join \w+,?) ?(.*)", re.DOTALL)
_ONLY_COLUMNS = re.compile(r"[^\s()=<>!,]+#\d+L?|\bAND\b|\bisnotnull\b")
_LETTERS = re.compile(r"\w|'")


@dataclass(frozen=True)
class Node:
    """`text`: of its line, without the prefix."""

    number: int
    text: str


@dataclass(frozen=True)
class TableReading:
    """`alive`: its filter of dead rows, `words`: the table which that reads; None where the view has none."""

    table: str
    relation: Node
    columns: str
    in_subquery: bool
    alive: Node | None = None
    words: Node | None = None


@dataclass(frozen=True)
class Outline:
    """`asks`: a filter or join outside subqueries compares with more than columns."""

    readings: tuple[TableReading, ...]
    asks: bool


def read_outline(numbered: str) -> Outline:
    """Of `numberedTreeString`."""
    readings: list[TableReading] = []
    asks = False
    inside: list[int] = []  # depths where subqueries begin that are not over
    before, alive, words = -1, None, None
    for number, depth, text in numbered_nodes(numbered):
        node = Node(number, text)
        while inside and depth < inside[-1]:
            inside.pop()
        if depth > before + 1:
            inside.append(depth)
        before = depth
        if _ALIVE.match(node.text):
            alive, words = node, None
            continue
        relation = _RELATION.match(node.text)
        if relation is None:
            asks = asks or (not inside and _asks(node.text))
        elif relation[1].startswith(_WORDS):
            words = node
        elif relation[1].startswith(_FILES):
            is_own = words is not None and f".{_WORDS}{relation[1][len(_FILES) :]}[" in words.text
            filtered = (alive, words) if is_own else (None, None)
            readings.append(TableReading(relation[1], node, relation[2], bool(inside), *filtered))
            alive, words = None, None
    return Outline(tuple(readings), asks)


def numbered_nodes(numbered: str) -> list[tuple[int, int, str]]:
    """(number, depth, text) of each line that is a node."""
    found = filter(None, map(_LINE.fullmatch, numbered.split("\n")))
    return [(int(one[1]), len(one[2]) // 3, one[3]) for one in found]


def _asks(text: str) -> bool:
    """Whether a condition has anything but columns that are compared with each other."""
    condition = _ASKING.match(text)
    return condition is not None and _LETTERS.search(_ONLY_COLUMNS.sub("", condition[1])) is not None
