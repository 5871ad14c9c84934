"""Addresses of object stores as Hadoop names them: paths, options, and no credentials."""

from __future__ import annotations

import pytest

from tablestore_engine.fileio.store_address import parse_address
from tablestore_engine.spark.hadoop_connector import local_places, places_of

_SECRETS = {
    "AWS_ACCESS_KEY_ID": "hidden-id",
    "AWS_SECRET_ACCESS_KEY": "hidden-key",
    "AWS_SESSION_TOKEN": "hidden",
}


def test_places_of_s3_with_settings_have_them_as_options() -> None:
    """Endpoint, region, path style and anonymous access stand in the options; credentials of the environment do not."""
    address = parse_address(
        "s3://bucket/a/b?endpoint=http://127.0.0.1:9000&region=eu-central-1&path_style=false&anonymous=true"
    )
    places = places_of(address, _SECRETS)
    assert places.root == "s3a://bucket/a/b"
    assert places.path("s3://bucket/a/b/t/data-%41 1.parquet") == "s3a://bucket/a/b/t/data-%41 1.parquet"
    assert places.options == {
        "fs.s3a.endpoint": "http://127.0.0.1:9000",
        "fs.s3a.endpoint.region": "eu-central-1",
        "fs.s3a.path.style.access": "false",
        "fs.s3a.connection.ssl.enabled": "false",
        "fs.s3a.aws.credentials.provider": "org.apache.hadoop.fs.s3a.AnonymousAWSCredentialsProvider",
    }


@pytest.mark.parametrize(
    ("environment", "endpoint", "region"),
    [
        ({}, None, None),
        ({"AWS_REGION": "eu-west-1"}, None, "eu-west-1"),
        ({"AWS_ENDPOINT_URL": "https://store.example"}, "https://store.example", "us-east-1"),
        (
            {"AWS_ENDPOINT_URL": "https://a.example", "AWS_ENDPOINT_URL_S3": "https://b.example"},
            "https://b.example",
            "us-east-1",
        ),
    ],
)
def test_places_of_s3_without_settings_follow_the_environment(
    environment: dict[str, str], endpoint: str | None, region: str | None
) -> None:
    """What the engine's client takes from the environment is said to Hadoop; nothing else is."""
    options = places_of(parse_address("s3://bucket/w"), environment).options
    assert options.get("fs.s3a.endpoint") == endpoint
    assert options.get("fs.s3a.endpoint.region") == region


@pytest.mark.parametrize(
    ("address", "theirs"),
    [
        ("gs://bucket/w", "gs://bucket/w/t/f.parquet"),
        ("az://box/w?account=acc", "abfss://box@acc.dfs.core.windows.net/w/t/f.parquet"),
    ],
)
def test_path_of_other_clouds_has_their_scheme(address: str, theirs: str) -> None:
    """Google's paths stay, Azure's name the account as a host."""
    root = parse_address(address).root
    assert places_of(parse_address(address), {}).path(f"{root}/t/f.parquet") == theirs


def test_path_of_a_folder_is_a_file_url() -> None:
    """Local files need no connector."""
    assert local_places().path("/w/t/a b.parquet") == "file:///w/t/a b.parquet"
