"""`tablestore doctor` says which way Spark reads an object store, and why."""

from __future__ import annotations

import json
import os
import subprocess
import sys

import pytest

from integration_tests.s3.warehouses import address
from tablestore_engine.devservers.s3_server import S3ServerInfo
from tests.doses import case_rows


@pytest.mark.parametrize(
    ("flags", "expected"),
    case_rows(
        [
            ([], "(read_way: portable): the session has no Hadoop connector hadoop-aws"),
            (["--fetch-connector"], "(read_way: native): the Hadoop connector hadoop-aws answers for s3://"),
        ],
        1,
    ),
)
def test_doctor_names_the_way_of_reading(
    s3_server: S3ServerInfo, bucket: str, flags: list[str], expected: str
) -> None:
    """Without the connector's jars Arrow reads, and the missing one is named; with them Spark's own reader does."""
    environment = {
        **os.environ,
        "AWS_ACCESS_KEY_ID": s3_server.access_key,
        "AWS_SECRET_ACCESS_KEY": s3_server.secret_key,
    }
    command = [
        sys.executable,
        "-m",
        "tablestore_engine.cli.main",
        "doctor",
        "--json",
        "--master",
        "local[1]",
        *flags,
    ]
    place = address(bucket, "doctor", s3_server.url)
    done = subprocess.run(
        [*command, "--warehouse", place], env=environment, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    assert any(expected in line for line in json.loads(done.stdout)["checks"]), done.stdout
    assert s3_server.secret_key not in done.stdout + done.stderr
