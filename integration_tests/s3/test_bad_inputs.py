"""What users get wrong with a bucket: each its error with a code and a fix, and no row is lost or doubled.

The codes and causes are those of the table «Troubleshooting» of docs/object-stores.md. Answers that only AWS gives
come from the fault proxy.
"""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Iterator
from itertools import count, product
from pathlib import Path

import obstore
import pyarrow as pa
import pytest

from integration_tests.s3.fault_proxy import Asked, Fault, FaultProxy, Kind, Plan, refused
from integration_tests.s3.object_client import open_store
from integration_tests.s3.warehouses import address, open_files
from tablestore_engine.api import Engine, TableSpec, WriteSpec
from tablestore_engine.cli.main import main
from tablestore_engine.devservers.s3_server import S3ServerInfo
from tablestore_engine.errors import (
    FixData,
    OutcomeUnknown,
    StorageError,
    StoreAnswerUnknown,
    TablestoreError,
)
from tests.doses import case_rows

NAME = "demo.t"
GRACE = {"tablestore.expire-grace": "0 s"}  # of expiry: tests do not wait
KEYED = WriteSpec(TableSpec(primary_key=("id",), options=GRACE))
APPEND = WriteSpec(TableSpec())
DATA = "/bucket-0/data-"
_NUMBERS = count()
_EXPIRED = refused(400, "ExpiredToken")


@pytest.fixture
def prefix(credentials: None) -> str:
    """A warehouse of its own."""
    return f"inputs-{next(_NUMBERS)}"


@pytest.fixture
def direct(bucket: str, prefix: str, s3_server: S3ServerInfo) -> Iterator[Engine]:
    """The warehouse without the proxy."""
    with Engine(address(bucket, prefix, s3_server.url)) as engine:
        yield engine


@pytest.fixture
def through(bucket: str, prefix: str, proxy: FaultProxy) -> Callable[[], Engine]:
    """A new process that reaches it by the proxy."""
    return lambda: Engine(address(bucket, prefix, proxy.url))


def rows(*ids: int) -> pa.Table:
    """A row for each key."""
    return pa.table({"id": pa.array(ids, pa.int64()), "text": [f"row {one}" for one in ids]})


def ids(engine: Engine) -> list[int]:
    """The keys of a table that is whole, doubled ones twice."""
    assert engine.table(NAME).verify() == ()
    return stored(engine)


def stored(engine: Engine) -> list[int]:
    """The keys alone."""
    return sorted(engine.table(NAME).scan().to_arrow()["id"].to_pylist())


def _problem(work: Callable[[], object]) -> str:
    """The text of the engine's error; nothing when there is none. Other exceptions pass."""
    try:
        work()
    except TablestoreError as error:
        return str(error)
    return ""


def after(requests: int, fault: Fault) -> Plan:
    """Every request from this number on."""
    numbers = count(1)
    return lambda _: fault if next(numbers) > requests else None


def test_wrong_bucket_is_refused_with_its_fix(s3_server: S3ServerInfo, credentials: None) -> None:
    """Reading and writing: TS1264 says NoSuchBucket, and nothing creates the bucket."""
    with Engine(address("no-such-bucket", "wh", s3_server.url)) as engine:
        calls: list[Callable[[], object]] = [
            lambda: engine.write(NAME, rows(1), KEYED),
            lambda: engine.create_database("demo"),
            lambda: engine.table(NAME).scan().to_arrow(),
        ]
        for call in calls:
            with pytest.raises(StorageError, match=r"TS1264[\s\S]*NoSuchBucket[\s\S]*create the bucket"):
                call()


@pytest.mark.parametrize(("part", "spec"), case_rows(list(product(range(3), [KEYED, APPEND])), 1))
def test_token_that_expires_in_a_write_loses_and_doubles_no_row(
    direct: Engine, through: Callable[[], Engine], proxy: FaultProxy, spec: WriteSpec, part: int
) -> None:
    """From one request on the answer is ExpiredToken: the write says so, and its repetition commits once."""
    direct.write(NAME, rows(1, 2), spec)
    expected, problem, number = [1, 2], "none yet", part
    while problem:
        again = WriteSpec(spec.table, commit_user="job", commit_identifier=number)
        proxy.plan = after(number, _EXPIRED)
        with through() as engine:
            problem = _problem(lambda: engine.write(NAME, rows(10 + number), again))  # noqa: B023 - called at once
        assert problem == "" or re.match(r"TS1264|TS1306", problem), problem
        for words in ("ExpiredToken", "renew the session's credentials", "run the same command again"):
            assert problem == "" or words in problem, problem
        assert stored(direct) in (expected, [*expected, 10 + number])
        proxy.plan = lambda _: None
        with through() as engine:
            engine.write(NAME, rows(10 + number), again)
        expected = [*expected, 10 + number]
        assert stored(direct) == expected
        number += 3
    assert number > 30
    assert ids(direct) == expected


def test_refusal_after_the_claim_deletes_nothing(
    direct: Engine, through: Callable[[], Engine], proxy: FaultProxy
) -> None:
    """The snapshot is there and its table cannot be looked up: TS1306, and the committed rows stay."""
    direct.write(NAME, rows(1), KEYED)
    claimed: list[str] = []

    def plan(asked: Asked) -> Fault | None:
        if asked.method == "PUT" and asked.path.endswith("/snapshot-2"):
            claimed.append(asked.path)
        is_look = asked.method == "GET" and asked.path.endswith("/schema-0")
        return Fault(Kind.FORBIDDEN) if claimed and is_look else None

    proxy.plan = plan
    with through() as engine, pytest.raises(OutcomeUnknown, match=r"TS1306[\s\S]*AccessDenied[\s\S]*grant"):
        engine.write(NAME, rows(2), KEYED)
    assert ids(direct) == [1, 2]


def test_drop_without_delete_permission_changes_nothing(
    direct: Engine, through: Callable[[], Engine], proxy: FaultProxy
) -> None:
    """403 to every DELETE and bulk delete: TS1291, the rows stay readable and writable, and with permission they go."""
    direct.write(NAME, rows(1, 2), KEYED)
    proxy.plan = lambda asked: Fault(Kind.FORBIDDEN) if asked.method in {"DELETE", "POST"} else None
    with through() as engine:
        with pytest.raises(
            StorageError, match=r"TS1291[\s\S]*nothing was changed[\s\S]*AccessDenied[\s\S]*grant"
        ):
            engine.drop_table(NAME)
        assert not [one for one in proxy.requests if one.method == "PUT"]
        engine.write(NAME, rows(3), KEYED)
    assert ids(direct) == [1, 2, 3]
    proxy.plan = lambda _: None
    with through() as engine:
        engine.drop_table(NAME)
    files = open_files(direct.warehouse)
    assert files.list(f"{files.root}/demo.db") == []


def test_refusal_after_a_lost_put_leaves_the_outcome_open(
    bucket: str, prefix: str, direct: Engine, proxy: FaultProxy
) -> None:
    """The put may still land: a token that expires after it is no proof that nothing was done."""
    files = open_files(address(bucket, prefix, proxy.url))
    root = files.root
    puts = count(1)

    def plan(asked: Asked) -> Fault | None:
        first = asked.method == "PUT" and next(puts) == 1
        return Fault(Kind.DROP_AFTER) if first else _EXPIRED

    proxy.plan = plan
    with pytest.raises(StoreAnswerUnknown, match="TS1266"):
        files.create_exclusive(f"{root}/claim", b"mine")
    proxy.plan = lambda _: None
    assert files.read(f"{root}/claim") == b"mine"
    seen = files.read_seen(f"{root}/claim")
    puts = count(1)
    proxy.plan = plan
    with pytest.raises(StoreAnswerUnknown, match="TS1266"):
        files.replace_if(f"{root}/claim", b"other", seen)


@pytest.mark.parametrize(
    ("status", "reason", "fix"),
    [
        (403, "RequestTimeTooSkewed", "correct this machine's clock"),
        (403, "ExpiredToken", "renew the session's credentials"),
        (400, "InvalidToken", "renew the session's credentials"),
        (301, "PermanentRedirect", "set `region`"),
        (400, "AuthorizationHeaderMalformed", "set `region`"),
        (403, "SignatureDoesNotMatch", "AWS_SECRET_ACCESS_KEY"),
        (403, "InvalidAccessKeyId", "AWS_ACCESS_KEY_ID"),
        (403, "InvalidObjectState", "restore the object from the archive"),
        (403, "AccessDenied", "list, get, put and delete"),
    ],
)
def test_refusals_of_aws_have_their_fix(
    bucket: str, prefix: str, direct: Engine, proxy: FaultProxy, status: int, reason: str, fix: str
) -> None:
    """Each call of the port: TS1264 with the store's reason, without a repetition; HEAD answers have none by itself."""
    files = open_files(address(bucket, prefix, proxy.url))
    root = files.root
    files.write(f"{root}/a", b"1")
    calls: list[Callable[[], object]] = [
        lambda: files.read(f"{root}/a"),
        lambda: files.read_end(f"{root}/a", 10),
        lambda: files.size(f"{root}/a"),
        lambda: files.exists(f"{root}/a"),
        lambda: files.exists_file(f"{root}/a"),
        lambda: files.list(root),
        lambda: files.replace(f"{root}/a", b"2"),
        lambda: files.write(f"{root}/b", b"2"),
        lambda: files.copy(f"{root}/a", f"{root}/c"),
        lambda: files.delete(f"{root}/a"),
        lambda: files.delete_many([f"{root}/a", f"{root}/b"]),
        lambda: files.delete_tree(f"{root}/x"),
    ]
    proxy.plan = lambda _: refused(status, reason)
    for call in calls:
        proxy.forget()
        with pytest.raises(StorageError, match="TS1264") as error:
            call()
        assert fix in error.value.fix, error.value
        assert len(proxy.requests) <= 2  # a HEAD, and the request that says why
    proxy.plan = lambda _: None
    assert files.read(f"{root}/a") == b"1"
    assert [one.name for one in files.list(root)] == ["a"]


def test_clock_skew_and_redirect_commit_nothing(
    direct: Engine, through: Callable[[], Engine], proxy: FaultProxy
) -> None:
    """A write under a wrong clock or region, whole and from the middle on; the next one is as if it had not been."""
    direct.write(NAME, rows(1), KEYED)
    for number, (status, reason) in enumerate([(403, "RequestTimeTooSkewed"), (301, "PermanentRedirect")]):
        for begin in (0, 12):
            proxy.plan = after(begin, refused(status, reason))
            with through() as engine, pytest.raises(StorageError, match=f"TS1264[\\s\\S]*{reason}|redirect"):
                engine.write(NAME, rows(2 + number), KEYED)
            assert ids(direct) == [1, *range(2, 2 + number)]
        proxy.plan = lambda _: None
        with through() as engine:
            engine.write(NAME, rows(2 + number), KEYED)
    assert ids(direct) == [1, 2, 3]


def test_store_without_conditional_puts_is_refused(
    bucket: str, prefix: str, direct: Engine, through: Callable[[], Engine], proxy: FaultProxy
) -> None:
    """501 NotImplemented at the first put: TS1264 asks for another store, and the warehouse stays empty."""
    proxy.plan = lambda asked: refused(501, "NotImplemented") if asked.method == "PUT" else None
    with (
        through() as engine,
        pytest.raises(StorageError, match=r"TS1264[\s\S]*NotImplemented[\s\S]*conditional"),
    ):
        engine.write(NAME, rows(1), KEYED)
    files = open_files(direct.warehouse)
    assert files.list(files.root) == []


def test_endpoint_without_tls_is_refused_at_once(
    bucket: str, prefix: str, s3_server: S3ServerInfo, capsys: pytest.CaptureFixture[str]
) -> None:
    """https:// of a server that speaks http alone: TS1264 with the way out, from the command line without a trace."""
    place = address(bucket, prefix, s3_server.url.replace("http:", "https:"))
    assert main(["show", "--warehouse", place]) == 1
    said = capsys.readouterr()
    assert "TS1264" in said.err
    assert "write `endpoint` with http://" in said.err


def test_huge_metadata_file_is_refused_by_its_size(
    bucket: str, direct: Engine, s3_server: S3ServerInfo, capsys: pytest.CaptureFixture[str]
) -> None:
    """20 GB of a schema file: TS1293 comes with the first answer, and `show` lists the other table."""
    for name in (NAME, "demo.other"):
        direct.write(name, rows(1), KEYED)
    key = direct.warehouse.partition("?")[0].removeprefix("s3://")
    os.truncate(Path(s3_server.data_dir) / "objects" / key / "demo.db/t/schema/schema-0", 20 << 30)
    with (
        Engine(direct.warehouse) as engine,
        pytest.raises(FixData, match=r"TS1293[\s\S]*schema-0[\s\S]*limit"),
    ):
        engine.table(NAME).scan().to_arrow()
    assert main(["show", "--warehouse", direct.warehouse]) == 1
    said = capsys.readouterr()
    assert "demo.other" in said.out
    assert "TS1293" in said.err


def test_server_that_does_not_answer_has_a_code(bucket: str, prefix: str) -> None:
    """Nobody listens there: TS1266 names the cause and the setting, after the repetitions."""
    files = open_files(address(bucket, prefix, "http://127.0.0.1:1"))
    with pytest.raises(StoreAnswerUnknown, match=r"TS1266[\s\S]*refused[\s\S]*check `endpoint`"):
        files.read(f"{files.root}/x")


@pytest.mark.parametrize("part", [DATA, "/manifest/manifest-"])
def test_files_that_a_lifecycle_rule_deleted_are_named(
    direct: Engine, bucket: str, prefix: str, s3_server: S3ServerInfo, part: str
) -> None:
    """The rule deletes what the table needs: TS1201 on reading. `verify` names all data files, of metadata one."""
    direct.write(NAME, rows(1, 2), KEYED)
    direct.write(NAME, rows(2, 3), KEYED)
    store = open_store(s3_server, bucket)
    names = [one["path"] for chunk in obstore.list(store, prefix) for one in chunk]
    gone = [one for one in names if part in f"/{one}"]
    obstore.delete(store, gone)

    def named(text: str) -> list[str]:
        return [one for one in gone if one.rpartition("/")[2] in text]

    with Engine(direct.warehouse) as engine:
        problems = " ".join(engine.table(NAME).verify())
        assert set(named(problems)) == set(gone) if part == DATA else named(problems)
        with pytest.raises(TablestoreError, match="TS1201") as error:
            engine.table(NAME).scan().to_arrow()
    assert named(str(error.value))


def test_snapshot_that_a_lifecycle_rule_deleted_is_a_gap(
    direct: Engine, bucket: str, prefix: str, s3_server: S3ServerInfo
) -> None:
    """The rows of the newest snapshot are all there, and `verify` names the gap."""
    for number in range(3):
        direct.write(NAME, rows(number), KEYED)
    obstore.delete(open_store(s3_server, bucket), f"{prefix}/demo.db/t/snapshot/snapshot-2")
    with Engine(direct.warehouse) as engine:
        assert sorted(engine.table(NAME).scan().to_arrow()["id"].to_pylist()) == [0, 1, 2]
        assert "gaps" in " ".join(engine.table(NAME).verify())


def test_parts_of_unfinished_uploads_disturb_nothing(
    direct: Engine, bucket: str, prefix: str, s3_server: S3ServerInfo
) -> None:
    """A killed writer left an upload beside the data files: no listing shows it, and the table lives on."""
    direct.write(NAME, rows(1), KEYED)
    store = open_store(s3_server, bucket)
    key = f"{prefix}/demo.db/t/bucket-0/data-00000000-0000-4000-8000-000000000000-0.parquet"
    writer = obstore.open_writer(store, key, buffer_size=5 << 20).__enter__()
    writer.write(bytes(11 << 20))
    direct.write(NAME, rows(2), KEYED)
    assert ids(direct) == [1, 2]
    table = direct.table(NAME)
    table.compact(full=True)
    table.expire(keep=1, older_than_ms=0)
    assert table.orphans(older_than_ms=0).found == ()
    assert ids(direct) == [1, 2]
    direct.drop_table(NAME)
    direct.write(NAME, rows(7), KEYED)
    assert ids(direct) == [7]
    writer.close()  # the late writer ends its upload: an orphan file, which no snapshot names
    assert ids(direct) == [7]


def test_paths_with_blanks_and_other_scripts_work(
    bucket: str, s3_server: S3ServerInfo, credentials: None
) -> None:
    """Prefix and partition values with blanks, marks of URLs and letters of other scripts, through a table's life."""
    place = address(bucket, "wäre house/東京 +&=~'(1)", s3_server.url)
    spec = WriteSpec(TableSpec(primary_key=("city", "id"), partition_by=("city",), options=GRACE))
    cities = ["São Paulo", "東京", "a/b c", "50% + q?x#y", "ü"]
    with Engine(place) as engine:
        for turn in ("old", "new"):
            engine.write(NAME, pa.table({"city": cities, "id": range(5), "text": [turn] * 5}), spec)
    with Engine(place) as engine:
        table = engine.table(NAME)
        table.tag("été 1")
        table.compact(full=True)
        table.expire(keep=1, older_than_ms=0)
        found = table.scan().to_arrow().to_pydict()
        assert sorted(found["city"]) == sorted(cities)
        assert found["text"] == ["new"] * 5
        assert table.verify() == ()
        engine.drop_table(NAME)
        files = open_files(place)
        assert files.list(f"{files.root}/demo.db/t") == []
