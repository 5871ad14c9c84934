"""Changelog producers beside Java Paimon: the same batches give the same changelog, commit by commit."""

from __future__ import annotations

import random
from collections.abc import Sequence
from pathlib import Path

import pytest
from py4j.protocol import Py4JError

from integration_tests.interop.java_paimon import JavaPaimon
from integration_tests.interop.oracle import Kinded
from integration_tests.interop.ours import Ours
from integration_tests.interop.rows import Change, arrow_rows, assert_same
from integration_tests.interop.schemas import Schema, schema
from tests.doses import cases

VECTORS = {"bucket": "1", "deletion-vectors.enabled": "true"}
PRODUCERS: dict[str, dict[str, str]] = {
    "input": {"changelog-producer": "input"},
    "input-sequenced": {"changelog-producer": "input", "sequence.field": "n"},
    "input-ignoring": {"changelog-producer": "input", "ignore-delete": "true"},
    "quiet": {
        "changelog-producer": "lookup",
        "changelog-producer.row-deduplicate": "true",
        "changelog-producer.row-deduplicate-ignore-fields": "n,at",
    },
    "quiet-sums": {
        "changelog-producer": "lookup",
        "changelog-producer.row-deduplicate": "true",
        "changelog-producer.row-deduplicate-ignore-fields": "n",
        "merge-engine": "aggregation",
        "fields.n.aggregate-function": "sum",
    },
}


def table_schema(**options: str) -> Schema:
    """A key and three columns."""
    columns = {"id": "BIGINT", "text": "STRING", "n": "INT", "at": "INT"}
    return schema(columns, keys=("id",), options={**VECTORS, **options})  # type: ignore[arg-type]


def make_batch(chance: random.Random, kinds: Sequence[str]) -> list[Kinded]:
    """Rows of a few keys, of which some come twice."""
    return [
        (
            chance.choice(kinds),
            {"id": chance.randrange(8), "text": chance.choice("ab"), "n": chance.randrange(3), "at": number},
        )
        for number in range(7)
    ]


def told_by_java(java: JavaPaimon, location: Path) -> list[list[Change]]:
    """The changes of each snapshot that has any, as Java's stream gives them."""
    stream = java.stream(location, scan__mode="from-snapshot", scan__snapshot_id="1")
    return [batch for _, batch in stream.poll() if batch]


@pytest.mark.parametrize("seed", cases([1, 2, 3], 1))
@pytest.mark.parametrize("name", cases(list(PRODUCERS), 3))
def test_our_changelog_is_java_s(java: JavaPaimon, tmp_path: Path, name: str, seed: int) -> None:
    """Two tables, one written by each: equal rows, and equal changes of each commit, whoever reads them."""
    chance, declared = random.Random(seed), table_schema(**PRODUCERS[name])
    ours, theirs, us = tmp_path / "m.db" / "ours", tmp_path / "m.db" / "theirs", Ours()
    us.create(ours, declared)
    java.create(theirs, declared)
    kinds = ("+I",) if name == "quiet-sums" else ("+I", "+I", "+U", "-D")
    for _ in range(5):
        batch = make_batch(chance, kinds)
        rows, listed = arrow_rows(declared, [row for _, row in batch]), [kind for kind, _ in batch]
        us.write(ours, rows, listed, duplicates="last")
        java.write(theirs, rows, listed)
        assert_same(java.read(theirs), us.read(ours), "rows")
        assert_same(us.read(ours), java.read(ours), "rows of ours, as Java reads them")
    told = told_by_java(java, theirs)
    assert len(told) > 2
    for expected, seen in zip(told, told_by_java(java, ours), strict=True):
        assert_same(expected, seen, "changes of one commit")
    newest = us.store(ours).latest()
    assert newest is not None
    assert_same([one for part in told for one in part], us.changelog(ours, 0, newest.id), "as we read them")


def test_java_refuses_full_compaction_with_vectors(java: JavaPaimon, tmp_path: Path) -> None:
    """The reason why it is not written here: Paimon makes no table with both."""
    with pytest.raises(Py4JError, match="Deletion vectors mode is only supported for NONE/INPUT/LOOKUP"):
        java.create(tmp_path / "m.db" / "full", table_schema(**{"changelog-producer": "full-compaction"}))
