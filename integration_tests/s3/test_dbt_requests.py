"""Requests of the second `dbt build` of one small model, on a real S3 server."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

import pytest

from integration_tests.adapter.conftest import Shop
from integration_tests.s3.fault_proxy import FaultProxy, Request
from integration_tests.s3.warehouses import address

MODEL = "{{ config(materialized='incremental', unique_key='id') }} select id, 'a' as v from range(5)"
TESTS = "models: [{name: small, columns: [{name: id, data_tests: [unique, not_null]}]}]"


def longest_sequence(requests: Iterable[Request]) -> int:
    """How many of them began one after the end of the other: at least so many round trips."""
    found, end = 0, -1
    for one in sorted(requests, key=lambda each: each.end):
        if one.start > end:
            found, end = found + 1, one.end
    return found


@pytest.mark.usefixtures("credentials")
@pytest.mark.parametrize(("properties", "most", "in_sequence"), [("", 60, 30), (TESTS, 224, 130)])
def test_small_build_makes_few_requests(
    bucket: str, proxy: FaultProxy, tmp_path: Path, properties: str, most: int, in_sequence: int
) -> None:
    """One model of five rows, built by a process that has built before; with two tests, that hold it back, too."""
    shop = Shop(tmp_path)
    shop.output |= {"warehouse": address(bucket, f"small-{most}", proxy.url), "threads": 1}
    shop.write("models/small.sql", MODEL)
    shop.write("models/small.yml", properties)
    shop.dbt("build", "--select", "small")
    proxy.forget()
    shop.dbt("build", "--select", "small")
    print("TOTAL", len(proxy.requests), longest_sequence(proxy.requests))
    assert len(proxy.requests) <= most
    assert longest_sequence(proxy.requests) <= in_sequence
