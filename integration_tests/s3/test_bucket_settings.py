"""Buckets that are set up in another way: missing permissions, another region, versions of objects."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from itertools import count

import pyarrow as pa
import pytest

from integration_tests.s3.other_server import REGION, ROOT, USER, OtherServer, other_server
from integration_tests.s3.warehouses import address, hurried, open_files
from tablestore_engine.api import Engine, TableSpec, WriteSpec
from tablestore_engine.catalog.store_check import check_store
from tablestore_engine.errors import StorageError, StoreAnswerUnknown

NAME = "demo.t"
GRACE = {"tablestore.expire-grace": "0 s"}  # of expiry: tests do not wait
KEYED = WriteSpec(TableSpec(primary_key=("id",), options=GRACE))
ACTIONS = ("s3:ListBucket", "s3:GetObject", "s3:PutObject", "s3:DeleteObject")
_NUMBERS = count()


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[OtherServer]:
    """In another region, with a user."""
    with other_server(tmp_path_factory.mktemp("other")) as made:
        made.make_user()
        yield made


@pytest.fixture
def own_bucket(server: OtherServer) -> str:
    """A new bucket."""
    name = f"settings-{next(_NUMBERS)}"
    server.ask("PUT", f"/{name}")
    return name


@pytest.fixture
def open_as(server: OtherServer, own_bucket: str, monkeypatch: pytest.MonkeyPatch) -> Callable[..., Engine]:
    """An engine of the administrator or of the user. A client keeps the keys of its address, so each has its own."""

    def opened(who: str, region: str = REGION) -> Engine:
        keys = ROOT if who == "root" else USER
        monkeypatch.setenv("AWS_ACCESS_KEY_ID", keys.access_key)
        monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", keys.secret_key)
        seconds = 60 if who == "root" else 61
        return Engine(address(own_bucket, "wh", f"http://{server.host}", timeout_s=seconds, region=region))

    return opened


def rows(*ids: int) -> pa.Table:
    """A row for each key."""
    return pa.table({"id": pa.array(ids, pa.int64()), "text": [f"row {one}" for one in ids]})


def ids(engine: Engine) -> list[int]:
    """The keys of a table that is whole."""
    assert engine.table(NAME).verify() == ()
    return sorted(engine.table(NAME).scan().to_arrow()["id"].to_pylist())


@pytest.mark.parametrize("missing", ACTIONS)
def test_one_missing_permission_is_named_and_loses_nothing(
    server: OtherServer, own_bucket: str, open_as: Callable[..., Engine], missing: str
) -> None:
    """Work that needs it ends with TS1264 and the four permissions; with them the same work is done."""
    with open_as("root") as root:
        for number in range(3):
            root.write(NAME, rows(number), KEYED)
        server.allow(own_bucket, [one for one in ACTIONS if one != missing])
        with open_as("user") as user:
            work: Callable[[], object] = lambda: user.write(NAME, rows(3), KEYED)  # noqa: E731 - one of two
            if missing == "s3:DeleteObject":
                user.write(NAME, rows(3), KEYED)
                work = lambda: user.table(NAME).expire(keep=1, older_than_ms=0)  # noqa: E731 - the other one
            with pytest.raises(
                StorageError, match=r"TS1264[\s\S]*AccessDenied[\s\S]*list, get, put and delete"
            ):
                work()
            assert ids(root) == ([0, 1, 2, 3] if missing == "s3:DeleteObject" else [0, 1, 2])
            server.allow(own_bucket, ACTIONS)
            work()
        assert ids(root) == [0, 1, 2, 3]


def test_bucket_in_another_region_is_refused_with_the_setting(open_as: Callable[..., Engine]) -> None:
    """The server names its region: TS1264 repeats it, for reads, for writes, and for a request without a body."""
    with open_as("root") as root:
        root.write(NAME, rows(1), KEYED)
        with open_as("root", "us-east-1") as wrong:
            calls: list[Callable[[], object]] = [
                lambda: wrong.write(NAME, rows(2), KEYED),
                lambda: wrong.table(NAME).scan().to_arrow(),
                lambda: wrong.create_database("other"),
            ]
            for call in calls:
                with pytest.raises(
                    StorageError, match=rf'TS1264[\s\S]*expecting "{REGION}"[\s\S]*set `region`'
                ):
                    call()
        assert ids(root) == [1]


def test_versioned_bucket_keeps_every_promise(
    server: OtherServer, own_bucket: str, open_as: Callable[..., Engine]
) -> None:
    """Commits, compaction, expiry and DROP: an old version of a deleted object counts as gone."""
    with open_as("root") as engine:
        engine.create_database("demo")
        server.make_versioned(own_bucket)
        for number in range(3):
            engine.write(NAME, rows(number, 99), KEYED)
        table = engine.table(NAME)
        table.tag("kept", 1)
        table.compact(full=True)
        table.expire(keep=1, older_than_ms=0)
        assert ids(engine) == [0, 1, 2, 99]
        assert table.scan(tag="kept").to_arrow().num_rows == 2
        engine.drop_table(NAME)
        assert engine.find_table(NAME) is None
        files = open_files(engine.warehouse)
        assert not files.exists(f"{files.root}/demo.db/t")
    assert "<DeleteMarker>" in server.ask("GET", f"/{own_bucket}", query="versions=")


def test_store_that_keeps_deleted_names_is_refused(
    server: OtherServer, own_bucket: str, open_as: Callable[..., Engine]
) -> None:
    """The server refuses a conditional put over a deleted version, unlike S3: TS1266 at the check of a store."""
    server.make_versioned(own_bucket)
    with open_as("root") as engine:
        files = open_files(engine.warehouse)
        with pytest.raises(StoreAnswerUnknown, match=r"TS1266[\s\S]*versioned bucket"):
            check_store(files, files.root, hurried())
