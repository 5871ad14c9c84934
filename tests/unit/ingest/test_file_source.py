"""Files of JSON lines as a source: order, growth, lines without an end, files that are not what they were."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tablestore_engine.api import Engine, IngestSpec
from tablestore_engine.errors import FixData, FixRequest, NotFound
from tablestore_engine.ingest import file_source
from tablestore_engine.ingest.file_source import FileSource
from tablestore_engine.runtime.outside_world import SYSTEM
from tests.doses import examples
from tests.unit.ingest.histories import engine_at, table_of


@pytest.fixture
def engine(tmp_path: Path) -> Engine:
    """On a warehouse of its own."""
    return engine_at(tmp_path / "w")


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """For files."""
    made = tmp_path / "in"
    made.mkdir()
    return made


def line(key: int, v: str = "x") -> str:
    """One insert."""
    return json.dumps({"before": None, "after": {"id": key, "v": v}, "op": "c"})


def spec_of(path: Path, **more: Any) -> IngestSpec:
    """Into d.t."""
    words: dict[str, Any] = {"key": ("id",), "infer": True, **more}
    return IngestSpec(format="debezium-json", into="d.t", path=str(path), **words)


def test_files_in_the_order_of_their_names(engine: Engine, folder: Path) -> None:
    """Each is read once; hidden ones, folders and blank lines are passed by; later runs take what came."""
    (folder / "b.jsonl").write_text(line(1, "later") + "\r\n\n" + line(2) + "\n")
    (folder / "a.jsonl").write_text(line(1, "first") + "\n" + line(3) + "\n")
    (folder / "_temporary").write_text("x")
    (folder / ".hidden").write_text("x")
    (folder / "sub").mkdir()
    assert engine.ingest(spec_of(folder)).messages == 4
    assert {key: row["v"] for key, row in table_of(engine).items()} == {1: "later", 2: "x", 3: "x"}
    assert engine.ingest(spec_of(folder)).messages == 0
    with (folder / "b.jsonl").open("a") as file:
        file.write(line(4) + "\n")
    (folder / "c.jsonl").write_text(line(5))
    assert engine.ingest(spec_of(folder)).messages == 2
    assert engine.table("d.t").positions().keys() == {f"files:{folder}"}


def test_a_line_that_is_still_being_written(engine: Engine, folder: Path) -> None:
    """Half a line waits for its rest; behind a later file it is a message that cannot be read."""
    path = folder / "a.jsonl"
    path.write_text(line(1) + "\n" + line(2)[:9])
    assert engine.ingest(spec_of(folder)).messages == 1
    path.write_text(line(1) + "\n" + line(2))
    assert engine.ingest(spec_of(folder)).messages == 1, "a whole object needs no line break"
    path.write_text(line(1) + "\n" + line(2) + "\n" + line(3)[:9])
    (folder / "b.jsonl").write_text(line(4))
    with pytest.raises(FixData, match=r"TS1421.*a\.jsonl, byte"):
        engine.ingest(spec_of(folder))
    report = engine.ingest(spec_of(folder, on_error="dead_letter"))
    assert (report.dead, sorted(table_of(engine))) == (1, [1, 2, 4])
    (letter,) = engine.table("d.t__dead_letters").scan().to_arrow().to_pylist()
    assert (letter["part"], letter["place"]) == ("a.jsonl", len(line(1) + line(2)) + 2)


def test_files_that_are_not_what_they_were(engine: Engine, folder: Path) -> None:
    """Written anew, shorter, gone, or come too late: TS1432, and nothing is written."""
    path = folder / "b.jsonl"
    path.write_text(line(1) + "\n" + line(2) + "\n")
    engine.ingest(spec_of(folder))
    for text in (line(9) + "\n" + line(2) + "\n" + line(3), line(1)):
        path.write_text(text)
        with pytest.raises(FixRequest, match="TS1432"):
            engine.ingest(spec_of(folder))
    path.unlink()
    with pytest.raises(FixRequest, match=r"TS1432[\s\S]*is gone"):
        engine.ingest(spec_of(folder))
    path.write_text(line(1) + "\n" + line(2) + "\n" + line(3))
    (folder / "a.jsonl").write_text(line(7))
    with pytest.raises(FixRequest, match=r"TS1432[\s\S]*sort before"):
        engine.ingest(spec_of(folder))
    (folder / "a.jsonl").unlink()
    assert engine.ingest(spec_of(folder)).messages == 1
    assert sorted(table_of(engine)) == [1, 2, 3]


def test_paths_and_positions_that_mean_nothing(engine: Engine, folder: Path) -> None:
    """No such path is TS1431; a position that another program wrote is TS1438; an empty folder is no work."""
    with pytest.raises(NotFound, match="TS1431"):
        engine.ingest(spec_of(folder / "x"))
    assert engine.ingest(spec_of(folder)).messages == 0
    (folder / "a.jsonl").write_text(line(1) + "\n")
    engine.ingest(spec_of(folder))
    from tablestore_engine.api import WriteSpec
    from tablestore_engine.spi import PositionStep

    before = engine.table("d.t").positions()[f"files:{folder}"]
    step = PositionStep(before, '{"x":1}')
    rows = engine.table("d.t").scan().to_arrow()
    engine.write("d.t", rows, WriteSpec(positions={f"files:{folder}": step}))
    with pytest.raises(FixRequest, match="TS1438"):
        engine.ingest(spec_of(folder))


@pytest.mark.nightly
@given(
    pieces=st.lists(st.integers(1, 60), max_size=8),
    rows_max=st.integers(1, 5),
    bytes_max=st.integers(1, 200),
    splits=st.sets(st.integers(1, 11), max_size=3),
)
@settings(max_examples=examples(20, 60), deadline=None)
def test_a_file_that_grows_byte_by_byte(
    tmp_path_factory: pytest.TempPathFactory,
    pieces: list[int],
    rows_max: int,
    bytes_max: int,
    splits: set[int],
) -> None:
    """Whenever it is looked at, wherever it is cut, in however many files: each line once, in order."""
    root = tmp_path_factory.mktemp("growing")
    folder = root / "in"
    folder.mkdir()
    lines = [line(number % 4, str(number)) + "\n" for number in range(12)]
    names = [f"{sum(one <= number for one in splits)}.jsonl" for number in range(12)]
    written = [(name, byte) for name, text in zip(names, lines, strict=True) for byte in text]
    spec = spec_of(folder, rows_max=rows_max, bytes_max=bytes_max)
    total, at = 0, 0
    with engine_at(root / "w") as engine:
        for piece in (*pieces, len(written)):
            for name, byte in written[at : at + piece]:
                with (folder / name).open("a") as file:
                    file.write(byte)
            at += piece
            total += engine.ingest(spec).messages
        assert total == 12
        assert {key: row["v"] for key, row in table_of(engine).items()} == {0: "8", 1: "9", 2: "10", 3: "11"}


def test_an_earlier_file_that_grows(engine: Engine, folder: Path) -> None:
    """What is added behind the position of a file that was left is TS1432, never left out."""
    for name, key in (("a", 1), ("b", 2), ("c", 3)):
        (folder / name).write_text(line(key) + "\n")
    engine.ingest(spec_of(folder))
    with (folder / "a").open("a") as file:
        file.write(line(4) + "\n")
    with pytest.raises(FixRequest, match=r"TS1432[\s\S]*sort before c"):
        engine.ingest(spec_of(folder))
    (folder / "a").write_text(line(1) + "\n")
    assert engine.ingest(spec_of(folder)).messages == 0


def test_an_earlier_file_that_goes_while_another_comes(engine: Engine, folder: Path) -> None:
    """As many files as before are not the same files. One that only goes was read; the rest goes on."""
    for name, key in (("a", 1), ("b", 2), ("d", 3)):
        (folder / name).write_text(line(key) + "\n")
    engine.ingest(spec_of(folder))
    (folder / "a").unlink()
    (folder / "c").write_text(line(4) + "\n")
    with pytest.raises(FixRequest, match=r"TS1432[\s\S]*c sort"):
        engine.ingest(spec_of(folder))
    (folder / "c").unlink()
    (folder / "e").write_text(line(5) + "\n")
    assert engine.ingest(spec_of(folder)).messages == 1
    assert sorted(table_of(engine)) == [1, 2, 3, 5]


def test_a_follower_notices_files_too(engine: Engine, folder: Path) -> None:
    """Not at its start alone."""
    for name, key in (("a", 1), ("c", 2)):
        (folder / name).write_text(line(key) + "\n")
    source = FileSource(str(folder), SYSTEM)
    reached = source.begin()
    for _ in range(2):
        reached = source.read(reached, 1, 1 << 20, 0).reached
    (folder / "b").write_text(line(3) + "\n")
    with pytest.raises(FixRequest, match="TS1432"):
        source.read(reached, 1, 1 << 20, 0)
    (folder / "b").unlink()
    with (folder / "a").open("a") as file:
        file.write(line(4) + "\n")
    with pytest.raises(FixRequest, match="TS1432"):
        source.read(reached, 1, 1 << 20, 0)


def test_many_files(engine: Engine, folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """They are told by one checksum, so that a position stays small: then none of them may go either."""
    monkeypatch.setattr(file_source, "_LISTED_MAX", 3)
    for name in "abcdefg":
        (folder / name).write_text(line(ord(name)) + "\n")
    engine.ingest(spec_of(folder, rows_max=1))
    (folder / "h").write_text(line(1) + "\n")
    assert engine.ingest(spec_of(folder)).messages == 1
    (folder / "b").unlink()
    with pytest.raises(FixRequest, match=r"TS1432[\s\S]*sort before h"):
        engine.ingest(spec_of(folder))


def test_a_position_of_files_from_before(engine: Engine, folder: Path) -> None:
    """One that only counts files is read; from the next one on their sizes are known."""
    from tablestore_engine.api import WriteSpec
    from tablestore_engine.spi import PositionStep

    for name, key in (("a", 1), ("b", 2), ("c", 3)):
        (folder / name).write_text(line(key) + "\n")
    engine.ingest(spec_of(folder))
    source = f"files:{folder}"
    new = engine.table("d.t").positions()[source]
    said = json.loads(new)
    old = json.dumps({name: said[name] for name in ("file", "byte", "tail", "files")}, separators=(",", ":"))
    rows = engine.table("d.t").scan().to_arrow()
    engine.write("d.t", rows, WriteSpec(positions={source: PositionStep(new, old)}))
    assert engine.ingest(spec_of(folder)).messages == 0
    (folder / "aa").write_text(line(9))
    with pytest.raises(FixRequest, match=r"TS1432[\s\S]*sort before c"):
        engine.ingest(spec_of(folder))
    (folder / "aa").unlink()
    (folder / "d").write_text(line(4) + "\n")
    assert engine.ingest(spec_of(folder)).messages == 1
    with (folder / "b").open("a") as file:
        file.write(line(5) + "\n")
    with pytest.raises(FixRequest, match=r"TS1432[\s\S]*b sort"):
        engine.ingest(spec_of(folder))
