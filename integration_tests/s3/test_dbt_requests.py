"""Requests of the second `dbt build` of one small model, on a real S3 server."""

from __future__ import annotations

from pathlib import Path

import pytest

from integration_tests.adapter.conftest import Shop
from integration_tests.s3.fault_proxy import FaultProxy
from integration_tests.s3.warehouses import address
from tests.doses import case_rows

MODEL = "{{ config(materialized='incremental', unique_key='id') }} select id, 'a' as v from range(5)"
TESTS = "models: [{name: small, columns: [{name: id, data_tests: [unique, not_null]}]}]"


@pytest.mark.nightly  # by day test_round_trips.py; adapter/test_file_operations.py
@pytest.mark.usefixtures("credentials")
@pytest.mark.parametrize(
    ("properties", "most"), case_rows([("", 60), (TESTS, 230)], 1), ids=["alone", "tested"]
)
def test_small_build_makes_few_requests(
    bucket: str, proxy: FaultProxy, tmp_path: Path, properties: str, most: int
) -> None:
    """One model of five rows, built by a process that has built before; with two tests, that hold it back, too."""
    shop = Shop(tmp_path)
    shop.output |= {"warehouse": address(bucket, f"small-{most}", proxy.url), "threads": 1}
    shop.output["spark"] |= {"connector": "fetch"}  # the JVM is that of the suite
    shop.write("models/small.sql", MODEL)
    shop.write("models/small.yml", properties)
    shop.dbt("build", "--select", "small")
    proxy.forget()
    shop.dbt("build", "--select", "small")
    assert len(proxy.requests) <= most
