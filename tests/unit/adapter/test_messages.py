"""What dbt shows of ours: no control characters, and only what the terminal has."""

from __future__ import annotations

import io
import sys

import pytest
from dbt.adapters.events.logging import AdapterLogger

from dbt.adapters.tablestore.adapter_response import describe_commit
from dbt.adapters.tablestore.dbt_errors import to_dbt_error
from dbt.adapters.tablestore.messages import TerminalMessages
from tablestore_engine.api import WriteReport
from tablestore_engine.catalog.identifier import Identifier
from tablestore_engine.errors import FixRequest
from tablestore_engine.spi import LogPosition


def test_lines_errors_and_results(monkeypatch: pytest.MonkeyPatch) -> None:
    """Log lines keep their own breaks and nothing else; marks have stand-ins where standard output is ASCII."""
    said: list[str] = []
    for name in ("info", "warning", "debug"):
        monkeypatch.setattr(AdapterLogger, name, lambda _self, text, *_args: said.append(text))
    monkeypatch.setattr(sys, "stdout", io.TextIOWrapper(io.BytesIO(), encoding="ascii"))
    logger = TerminalMessages("Tablestore")
    logger.info("a\x1b[2J\nb → c")
    logger.warning("\u202ex")
    logger.debug("select\t1")
    assert said == ["a\\x1b[2J\nb -> c", "\\u202ex", "select\t1"]
    report = WriteReport(Identifier("demo", "t"), 7, inserted=1, log=LogPosition("kafka", "t", {0: (0, 1)}))
    assert describe_commit(report)._message == "snapshot 7 (+1 ~0 -0) - kafka t[0] 0..1"
    told = str(to_dbt_error(FixRequest("TS1000", "t\x9b", why="…", fix="y")))
    assert "t\\x9b\n    why: ..." in told
