"""`tablestore log show` without brokers, and its figures as Prometheus reads them."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tablestore_engine.api import LogStatus
from tablestore_engine.cli.log import render_metrics
from tablestore_engine.cli.prometheus_text import write_metrics
from tablestore_engine.errors import FixRequest
from tablestore_engine.log.sink import EarlyState, LogState, LogWriter
from tablestore_engine.ui.lag_records import status_record
from tablestore_engine.warehouse.log.log_status import Pending
from tests.unit.cli.conftest import Run

LINE = re.compile(r'(tablestore_log_\w+)\{table="((?:[^"\\\n]|\\.)*)",log="((?:[^"\\\n]|\\.)*)"\} (\S+)')


def status(table: str = "d.t", **changes: object) -> LogStatus:
    """Two snapshots behind, a transaction open."""
    writer = LogWriter("ts-1", 5, 3, "ongoing", True, 1000)
    state = LogState(
        "kafka", "orders", 7, "me:7", 0, {0: 10}, {"orders[0]": (10, 14)}, writer, {"orders": {"id": "x"}},
        EarlyState({0: (7, 10)}, {0: (2, 4)}),
    )  # fmt: skip
    given = {"newest": 9, "pending": Pending(2, 40, 5000), "looked_ms": 9500, "trouble": None, **changes}
    return LogStatus(table, state=state, **given)  # type: ignore[arg-type]


def read_metrics(text: str) -> dict[str, float]:
    """name of each line without its prefix → value; every line is a comment or a sample."""
    found = {}
    for line in text.splitlines():
        sample = LINE.fullmatch(line)
        assert sample is not None or re.fullmatch(r"# (HELP|TYPE) tablestore_log_\w+ .+", line)
        if sample is not None:
            found[sample[1].removeprefix("tablestore_log_")] = float(sample[4])
    return found


def test_every_figure_has_its_line() -> None:
    """The same as in JSON."""
    assert read_metrics(render_metrics([status_record(status())])) == {
        "up": 1, "published_snapshot": 7, "newest_snapshot": 9, "lag_snapshots": 2, "lag_rows": 40, "lag_seconds": 4.5,
        "open_transaction": 1, "unseen_messages": 4, "early_messages": 3, "unchecked_messages": 2, "producer_epoch": 3,
        "looked_timestamp_seconds": 9.5,
    }  # fmt: skip


def test_what_is_not_known_has_no_line() -> None:
    """A log without markers is not 0 snapshots behind; one that could not be asked is down and nothing else."""
    found = read_metrics(render_metrics([status_record(status(pending=None, trouble="TS1707"))]))
    assert not {"lag_snapshots", "lag_rows", "lag_seconds"} & set(found)
    assert found["up"] == 0
    assert read_metrics(render_metrics([{"table": "d.t", "log": "x", "trouble": "TS1702"}])) == {"up": 0}


def test_families_stand_together() -> None:
    """As the format asks: HELP and TYPE once, then all tables."""
    text = render_metrics([status_record(status(name)) for name in ("a.b", "c.d")])
    names = [line.partition("{")[0].split()[-1 if "{" in line else 2] for line in text.splitlines() if line]
    assert names == sorted(names, key=names.index)
    assert text.count("# TYPE tablestore_log_up gauge") == 1


@given(st.text(st.characters(exclude_categories=["Cs"]), max_size=20))
def test_any_name_is_a_label(name: str) -> None:
    """Quotes, backslashes and line breaks of a name come back as they were."""
    text = render_metrics([{"table": name, "log": "x", "trouble": None}])
    (line,) = [one for one in text.split("\n") if one.startswith("tablestore_log_up")]
    found = LINE.fullmatch(line)
    assert found is not None
    assert re.sub(r"\\(.)", lambda one: "\n" if one[1] == "n" else one[1], found[2]) == name


def test_the_file_changes_as_a_whole(tmp_path: Path) -> None:
    """A new content takes the place of the old; a folder that is not there is TS1932, and nothing is left over."""
    file = tmp_path / "logs.prom"
    write_metrics(file, "one\n")
    before = file.stat().st_ino
    write_metrics(file, "two\n")
    assert (file.read_text(), file.stat().st_ino != before) == ("two\n", True)
    assert [path.name for path in tmp_path.iterdir()] == ["logs.prom"]
    with pytest.raises(FixRequest, match="TS1932"):
        write_metrics(tmp_path / "none" / "x", "three\n")
    (tmp_path / "folder").mkdir()
    with pytest.raises(FixRequest, match="TS1932"):
        write_metrics(tmp_path / "folder", "four\n")
    assert sorted(path.name for path in tmp_path.iterdir()) == ["folder", "logs.prom"]


def test_a_table_without_a_log(run: Run) -> None:
    """TS1931 for one that is named; in a listing it is left out."""
    done = run("log", "show", "demo.orders")
    assert (done.status, "TS1931" in done.err) == (1, True)
    assert run("log", "show", "--json").json == []
    assert run("log", "show").status == 0
