"""Branches of ours and of Java, each read, written, fast-forwarded and deleted by the other one."""

from __future__ import annotations

from pathlib import Path

import pytest

from integration_tests.interop.java_paimon import JavaPaimon
from integration_tests.interop.ours import Ours
from integration_tests.interop.rows import Row, arrow_rows, plain_rows
from integration_tests.interop.schemas import schema
from tablestore_engine.store.branches.branch_changes import create_branch, delete_branch, fast_forward
from tablestore_engine.store.branches.branch_list import list_user_branches
from tablestore_engine.store.write.write_request import WriteRequest

MADE = schema({"id": "BIGINT", "v": "STRING"}, keys=("id",), options={"bucket": "2", "num-levels": "6"})
ON_DEV = {"branch": "dev"}


def _rows(*pairs: tuple[int, str]) -> list[dict[str, object]]:
    return [{"id": number, "v": text} for number, text in pairs]


def _ours(location: Path, branch: str | None = None) -> list[Row]:
    store = Ours().store(location)
    one = store if branch is None else store.on_branch(branch)
    return sorted(plain_rows(one.read()))


@pytest.mark.parametrize("maker", ["java", "ours"])
@pytest.mark.parametrize("forwarder", ["java", "ours"])
def test_a_branch_is_made_written_and_brought_to_main_by_both(
    java: JavaPaimon, tmp_path: Path, maker: str, forwarder: str
) -> None:
    """Both write into it in turns; main has all of it in the end, and takes commits of both."""
    us, location = Ours(), tmp_path / "ours.db" / "t"
    us.create(location, MADE)
    us.write(location, arrow_rows(MADE, _rows((1, "a"), (2, "a"))))
    us.write(location, arrow_rows(MADE, _rows((2, "b"), (3, "b"))))
    java.tag(location, "base", 2)
    if maker == "java":
        java.table(location).createBranch("dev", "base")
    else:
        create_branch(us.store(location).context, "dev", tag="base")
    assert list_user_branches(us.store(location).context) == ("dev",)
    java.write(location, arrow_rows(MADE, _rows((3, "c"))), options={**ON_DEV, "write-only": "false"})
    us.store(location).on_branch("dev").write(_request(_rows((4, "d"))))
    java.write(location, arrow_rows(MADE, _rows((1, "e"))), options={**ON_DEV, "write-only": "false"})
    us.store(location).on_branch("dev").write(_request(_rows((5, "f"))))
    wanted = [(1, "e"), (2, "b"), (3, "c"), (4, "d"), (5, "f")]
    assert _ours(location, "dev") == sorted(java.read(location, options=ON_DEV)) == wanted
    assert _ours(location) == sorted(java.read(location)) == [(1, "a"), (2, "b"), (3, "b")]
    if forwarder == "java":
        java.table(location).fastForward("dev")
    else:
        fast_forward(us.store(location).context, "dev")
    assert _ours(location) == sorted(java.read(location)) == wanted
    us.write(location, arrow_rows(MADE, _rows((6, "g"))))
    java.write(location, arrow_rows(MADE, _rows((7, "h"))), options={"write-only": "false"})
    assert _ours(location) == sorted(java.read(location)) == [*wanted, (6, "g"), (7, "h")]
    assert us.store(location).verify() == ()
    if maker == "java":
        delete_branch(us.store(location).context, "dev")
    else:
        java.table(location).deleteBranch("dev")
    assert list_user_branches(us.store(location).context) == ()
    assert java.system_table(location, "branches").num_rows == 0


def _request(rows: list[dict[str, object]]) -> WriteRequest:
    return WriteRequest(rows=arrow_rows(MADE, rows))


def test_an_empty_branch_of_ours_is_one_for_java(java: JavaPaimon, tmp_path: Path) -> None:
    """With the table's schema and its own rows."""
    us, location = Ours(), tmp_path / "ours.db" / "t"
    us.create(location, MADE)
    us.write(location, arrow_rows(MADE, _rows((1, "a"))))
    create_branch(us.store(location).context, "dev")
    assert java.read(location, options=ON_DEV) == []
    java.write(location, arrow_rows(MADE, _rows((9, "z"))), options={**ON_DEV, "write-only": "false"})
    assert _ours(location, "dev") == [(9, "z")]
    assert _ours(location) == sorted(java.read(location)) == [(1, "a")]
