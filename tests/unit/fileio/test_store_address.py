"""Addresses of object stores: one text for one warehouse, and no credentials in it."""

from __future__ import annotations

from pathlib import Path

import pytest

from tablestore_engine.errors import FixRequest
from tablestore_engine.fileio.store_address import StoreSettings, parse_address, with_settings
from tablestore_engine.fileio.stores import absolute_address, local_folder


@pytest.mark.parametrize(
    ("text", "root"),
    [
        ("s3://bucket/wh", "s3://bucket/wh"),
        ("s3a://bucket/wh/", "s3://bucket/wh"),
        ("S3://bucket", "s3://bucket"),
        ("gs://bucket/a b/ü", "gs://bucket/a b/ü"),
        ("gcs://bucket/a", "gs://bucket/a"),
        ("az://box/a#1", "az://box/a#1"),
        ("abfss://box@name.dfs.core.windows.net/a", "az://box/a"),
    ],
)
def test_an_address_has_one_root(text: str, root: str) -> None:
    """Other spellings of a scheme, slashes at the end, blanks and letters of any language."""
    assert parse_address(text).root == root
    assert parse_address(parse_address(text).text) == parse_address(text)


def test_settings_of_an_address_and_of_a_profile_are_one_text() -> None:
    """What `storage:` says is added to the address, whatever the order."""
    settings = {"region": "eu-west-1", "endpoint": "http://127.0.0.1:7070", "anonymous": True, "timeout_s": 5}
    given = with_settings("s3a://b12/wh", settings)
    assert given == "s3://b12/wh?endpoint=http://127.0.0.1:7070&region=eu-west-1&anonymous=true&timeout_s=5"
    assert parse_address(given).settings == StoreSettings(
        "http://127.0.0.1:7070", "eu-west-1", True, True, None, 5
    )
    assert with_settings(given, settings) == given
    assert parse_address("abfss://box@name.dfs.core.windows.net/a").settings.account == "name"


@pytest.mark.parametrize(
    "text",
    ["s3:///wh", "s3://a/wh", "s3://b12/a/../c", "s3://b12/a//c", "s3://key:secret@b12/wh", "s3://b_!/x"],
)
def test_places_that_are_none_are_refused(text: str) -> None:
    """TS1210; credentials in the address are not repeated in the error."""
    with pytest.raises(FixRequest, match="TS1210") as refused:
        parse_address(text)
    assert "secret" not in str(refused.value)


@pytest.mark.parametrize(
    ("query", "why"),
    [
        ("secret_access_key=abc", "looks like a credential"),
        ("sas_token=abc", "looks like a credential"),
        ("regionx=x", "nearest is 'region'"),
        ("path_style=maybe", "true or false"),
        ("timeout_s=0", "from 1 to 3600"),
        ("cache_mb=-1", "MiB from 0 to 1000000"),
        ("cache_mb=all", "MiB from 0"),
        ("endpoint=", "empty"),
        ("endpoint=127.0.0.1:7070", "expected http://HOST or https://HOST"),
        ("endpoint=ftp://h", "expected http://HOST or https://HOST"),
    ],
)
def test_settings_that_mean_nothing_are_refused(query: str, why: str) -> None:
    """TS1211 names the setting, and never the value of a credential."""
    with pytest.raises(FixRequest, match=why) as refused:
        parse_address(f"s3://b12/wh?{query}")
    assert refused.value.code == "TS1211"
    assert "abc" not in str(refused.value)


@pytest.mark.parametrize(
    "text", ["gs://b12/wh?region=x", "az://b12/wh?path_style=false", "s3://b12/wh?account=x"]
)
def test_a_setting_of_another_store_is_refused(text: str) -> None:
    """It would have no effect: TS1211 lists what the store takes."""
    with pytest.raises(FixRequest, match="which takes endpoint") as refused:
        parse_address(text)
    assert refused.value.code == "TS1211"


def test_a_profile_must_not_contradict_the_address() -> None:
    """Two values of one setting: TS1211."""
    with pytest.raises(FixRequest, match="TS1211"):
        with_settings("s3://b12/wh?region=a", {"region": "b"})
    assert with_settings("s3://b12/wh?region=a", {"region": "a"}) == "s3://b12/wh?region=a"


def test_folders_take_no_settings_of_a_store(tmp_path: Path) -> None:
    """A setting without effect is refused; an object store is no folder of this machine."""
    with pytest.raises(FixRequest, match="TS1211"):
        absolute_address("wh", tmp_path, {"region": "x"})
    assert absolute_address("wh", tmp_path) == str(tmp_path / "wh")
    assert absolute_address("s3a://b12/wh", tmp_path, {"region": "x"}) == "s3://b12/wh?region=x"
    with pytest.raises(FixRequest, match="TS1060"):
        local_folder("s3://b12/wh")
