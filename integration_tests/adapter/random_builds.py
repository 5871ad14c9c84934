"""Random projects of gated models, seeds, views and dbt snapshots, built in sequence; an oracle says what is visible.

    python -m integration_tests.adapter.random_builds --first 1 --seeds 100

WHY        the oracle takes from dbt only which nodes and tests ran. What a node reads, what a test must say and what
           is published follows from data: a test is red when a row that it reads has its mark.
"""

from __future__ import annotations

import argparse
import shutil
import tempfile
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from random import Random

from integration_tests.adapter.conftest import Shop

Rows = dict[int, str]  # id → n
State = tuple[tuple[int, str, bool], ...]  # sorted (id, n, is current); of a model all rows are current
ROOTS = ("seed", "table", "keyed")
KINDS = ("table", "keyed", "append", "view", "snapshot", "snapshot")
CONFIGS = {
    "table": "materialized='table'",
    "keyed": "materialized='tablestore', primary_key='id'",
    "append": "materialized='incremental', unique_key='id'",
    "view": "materialized='view'",
}


@dataclass(frozen=True)
class Node:
    """`deletes`: hard_deletes of a snapshot."""

    name: str
    kind: str
    parents: tuple[str, ...] = ()
    deletes: str = "ignore"

    @property
    def is_gated(self) -> bool:
        """Whether its tests keep its rows back; of a snapshot they do not, and a view has no rows."""
        return self.kind not in ("view", "snapshot")

    @property
    def folder(self) -> str:
        """Where dbt looks for it."""
        return {"seed": "seeds", "snapshot": "snapshots"}.get(self.kind, "models")


@dataclass
class Project:
    """Nodes in an order in which they can be built; tests: name → the nodes that it reads."""

    nodes: dict[str, Node]
    tests: dict[str, tuple[str, ...]]
    roots: dict[str, Rows] = field(default_factory=dict)

    @staticmethod
    def make(random: Random) -> Project:
        """Two roots, three to five nodes below them, two to four tests."""
        nodes = {f"r{number}": Node(f"r{number}", random.choice(ROOTS)) for number in range(2)}
        for number in range(random.randint(3, 5)):
            kind = random.choice(KINDS)
            able = [one for one in nodes.values() if kind != "snapshot" or one.kind != "snapshot"]
            count = 1 if kind == "snapshot" else random.randint(1, 2)
            parents = tuple(one.name for one in random.sample(able, min(count, len(able))))
            name = f"n{number}"
            nodes[name] = Node(name, kind, parents, random.choice(("ignore", "invalidate")))
        gated = [one.name for one in nodes.values() if one.is_gated]
        tests = {f"t{number}": tuple(random.sample(gated, 2)) for number in range(random.randint(1, 2))}
        tests["u0"] = (random.choice(gated),)
        if random.random() < 0.5:
            tests["u1"] = (random.choice([one.name for one in nodes.values() if one.kind != "view"]),)
        return Project(nodes, tests)

    def mutate(self, random: Random) -> None:
        """New rows of the roots; some have the mark of a test."""
        for root in ("r0", "r1"):
            before = self.roots.get(root, {})
            ids = [one for one in range(5) if random.random() < 0.6] or [0]
            for one in ids:
                if one in before and random.random() < 0.5 and "!" not in before[one]:
                    continue
                mark = f"!{random.choice(sorted(self.tests))}!" if random.random() < 0.08 else ""
                before = {**before, one: f"v{random.randint(0, 9)}{mark}"}
            self.roots[root] = {one: before[one] for one in ids}

    def write(self, shop: Shop) -> None:
        """The project's files."""
        for node in self.nodes.values():
            shop.write(
                f"{node.folder}/{node.name}.{'csv' if node.kind == 'seed' else 'sql'}", self._text(node)
            )
        for test, read in self.tests.items():
            parts = [f"select id from {{{{ ref('{one}') }}}} where n like '%!{test}!%'" for one in read]
            shop.write(f"tests/{test}.sql", " union all ".join(parts))

    def _text(self, node: Node) -> str:
        if node.kind == "seed":
            return "\n".join(["id,n", *(f"{one},{n}" for one, n in self.roots[node.name].items()), ""])
        parts = [self._select(node, place, parent) for place, parent in enumerate(node.parents)]
        if not parts:
            parts = [f"select {one} as id, '{n}' as n" for one, n in self.roots[node.name].items()]
        query = " union all ".join(parts)
        if node.kind == "snapshot":
            config = f"unique_key='id', strategy='check', check_cols=['n'], hard_deletes='{node.deletes}'"
            return f"{{% snapshot {node.name} %}} {{{{ config({config}) }}}} {query} {{% endsnapshot %}}"
        later = "{% if is_incremental() %} where id not in (select id from {{ this }}) {% endif %}"
        tail = later if node.kind == "append" else ""
        return f"{{{{ config({CONFIGS[node.kind]}) }}}} select id, n from ({query}) {tail}"

    def _select(self, node: Node, place: int, parent: str) -> str:
        current = " where dbt_valid_to is null" if self.nodes[parent].kind == "snapshot" else ""
        number = "id" if node.kind == "snapshot" else f"id * 10 + {place}"
        return f"select {number} as id, n from {{{{ ref('{parent}') }}}}{current}"

    def query(self, node: Node, read: Callable[[str], Rows]) -> Rows:
        """What its query gives over what its parents have."""
        if not node.parents:
            return dict(self.roots[node.name])
        if node.kind == "snapshot":
            return dict(read(node.parents[0]))
        return {
            one * 10 + place: n
            for place, parent in enumerate(node.parents)
            for one, n in read(parent).items()
        }

    def ancestors(self, name: str) -> set[str]:
        """All nodes above it."""
        above = set(self.nodes[name].parents)
        return above.union(*(self.ancestors(one) for one in above))


def follow(node: Node, before: State, new: Rows) -> State:
    """Rows of a node after a run."""
    if node.kind == "snapshot":
        return record(before, new, is_closed=node.deletes == "invalidate")
    old = {one: n for one, n, _ in before}
    rows = {"keyed": {**old, **new}, "append": {**new, **old}}.get(node.kind, new)
    return tuple(sorted((one, n, True) for one, n in rows.items()))


def record(before: State, new: Rows, *, is_closed: bool) -> State:
    """Versions of a dbt snapshot; `is_closed`: rows that went away end."""
    made = []
    for one, n, is_open in before:
        gone = is_closed if one not in new else new[one] != n
        made.append((one, n, is_open and not gone))
    current = {one for one, _, is_open in made if is_open}
    made += [(one, n, True) for one, n in new.items() if one not in current]
    return tuple(sorted(made))


@dataclass
class Oracle:
    """`visible`: node → what readers see; None: there is no such table. `views`: those that were created."""

    project: Project
    visible: dict[str, State] = field(default_factory=dict)
    views: set[str] = field(default_factory=set)

    def command(self, statuses: dict[str, str]) -> list[str]:
        """After a command of which dbt says what became of each node and test; what it got wrong."""
        made: dict[str, State] = {}
        wrong = []
        for node in self.project.nodes.values():
            status = statuses.get(node.name, "skipped")
            if status == "skipped":
                continue
            can_read = all(self._now(parent, made) is not None for parent in node.parents)
            if (status == "success") != can_read:
                wrong.append(f"{node.name} is {status}, its parents can be read: {can_read}")
            if status == "success" and node.kind == "view":
                self.views.add(node.name)
            elif status == "success":
                new = self.project.query(node, lambda parent: self._now(parent, made) or {})
                made[node.name] = follow(node, self.visible.get(node.name, ()), new)
        for test, read in self.project.tests.items():
            status = statuses.get(test, "skipped")
            is_red = any(f"!{test}!" in n for one in read for _, n, _ in made.get(one, ()))
            if status not in ("skipped", "fail" if is_red else "pass"):
                wrong.append(f"{test} of {read} is {status}, its rows are {'red' if is_red else 'green'}")
        self.visible |= {one: made[one] for one in made if one not in self._held(made, statuses)}
        return wrong

    def _now(self, name: str, made: dict[str, State]) -> Rows | None:
        """What a node of this command reads by this name; None when there is nothing to read."""
        node = self.project.nodes[name]
        if node.kind == "view":
            parents = {one: self._now(one, made) for one in node.parents}
            if name not in self.views or None in parents.values():
                return None
            return self.project.query(node, lambda one: parents[one] or {})
        state = made.get(name, self.visible.get(name))
        return None if state is None else {one: n for one, n, is_open in state if is_open}

    def _held(self, made: dict[str, State], statuses: dict[str, str]) -> set[str]:
        """What of it must wait: red or untested, read by a test together with such rows, or built from them."""
        staged = {one for one in made if made[one] != self.visible.get(one)}
        tests = {test: read for test, read in self.project.tests.items() if test in statuses}
        held: set[str] = set()
        while True:
            more = set()
            for one in staged - held:
                gates = [test for test in tests if one in tests[test] and self.project.nodes[one].is_gated]
                is_green = all(statuses[test] == "pass" for test in gates)
                bound = {other for test in gates for other in tests[test] if other in staged}
                if not is_green or (bound | self.project.ancestors(one)) & held:
                    more.add(one)
            if not more:
                return held
            held |= more

    def compare(self, shop: Shop) -> list[str]:
        """What readers see otherwise than they must."""
        there, wrong = shop.tables(), []
        for node in self.project.nodes.values():
            if node.kind == "view":
                continue
            current = "dbt_valid_to is null" if node.kind == "snapshot" else "true"
            found = None
            if node.name in there:
                found = tuple(sorted(shop.rows(f"select id, n, {current} from demo.{node.name}")))
            if found != self.visible.get(node.name):
                wrong.append(
                    f"{node.name} ({node.kind}) shows {found}, expected {self.visible.get(node.name)}"
                )
        return wrong


def pick_command(random: Random, project: Project) -> tuple[str, ...]:
    """What is typed next."""
    kind = random.random()
    if kind < 0.6:
        return ("build",)
    if kind < 0.8:
        some = random.sample(sorted(project.nodes), random.randint(1, len(project.nodes)))
        return ("build", "--indirect-selection", "cautious", "--select", *some)
    return ("run",) if kind < 0.9 else ("snapshot",)


def play(seed: int, shop: Shop, commands: int = 5) -> list[str]:
    """What differed in the first command that went wrong; [] when all is as it must be."""
    random = Random(seed)
    project = Project.make(random)
    oracle, shown = Oracle(project), []
    for folder in ("models", "seeds", "macros"):
        shutil.rmtree(shop.folder / folder, ignore_errors=True)
    for number in range(commands):
        project.mutate(random)
        project.write(shop)
        shop.output["threads"] = random.choice((1, 2, 4))
        command = ("build",) if number == 0 else pick_command(random, project)
        steps = [command, ("retry",)] if random.random() < 0.3 else [command]
        for step in steps:
            is_good = shop.try_dbt(*step)
            statuses = {name: one["status"] for name, one in shop.results().items()}
            shown.append(f"{' '.join(step)} (threads {shop.output['threads']}): {statuses}")
            wrong = oracle.command(statuses) if step != ("retry",) else []
            wrong += oracle.compare(shop)
            if wrong:
                nodes = [
                    f"{one.name}: {one.kind} of {one.parents} {one.deletes}" for one in project.nodes.values()
                ]
                return [*nodes, f"tests {project.tests}", *shown, *wrong]
            if is_good:
                break
    return []


def main() -> None:
    """As many seeds as asked for; ends with an error when one of them differs."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--first", type=int, default=1)
    parser.add_argument("--seeds", type=int, default=20)
    parser.add_argument("--commands", type=int, default=5)
    given = parser.parse_args()
    failed = 0
    for seed in range(given.first, given.first + given.seeds):
        with tempfile.TemporaryDirectory() as folder:
            lines = play(seed, Shop(Path(folder)), given.commands)
        failed += bool(lines)
        print(f"seed {seed}: {'WRONG' if lines else 'right'}", *lines, sep="\n  ", flush=True)
    if failed:
        raise SystemExit(f"{failed} of {given.seeds} seeds differ")


if __name__ == "__main__":
    main()
