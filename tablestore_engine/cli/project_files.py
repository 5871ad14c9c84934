"""Files of a small dbt project: the quickstart of README.md, with or without brokers. Pure.

tests/unit/cli/test_init.py compares them with the blocks of README.md.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping

_SEED = """order_id,customer,amount,updated_at,op
1,ann,10.5,2026-01-01 10:00:00,c
2,bob,20.0,2026-01-01 10:05:00,c
3,cy,5.0,2026-01-01 10:07:00,c
"""
_LOG = """,
    log_system='kafka',
    log_consistency='transactional',
    kafka_topic='orders'"""
_MODEL = """{{ config(
    materialized='tablestore',
    primary_key='order_id',
    sequence_field='updated_at',
    delete_when="op = 'd'"LOG
) }}
select order_id, customer, amount, updated_at, op from {{ changes(ref('order_events')) }}
"""
_TESTS = """models:
  - name: orders
    columns:
      - {name: order_id, data_tests: [unique]}
      - {name: amount, data_tests: [not_null]}
unit_tests:
  - name: consumers_get_an_update_and_a_delete
    model: orders
    config: {meta: {tablestore: {result: changelog}}}
    given:
      - input: this
        rows:
          - {order_id: 1, amount: 10.5, updated_at: "2026-01-01 10:00:00", op: c}
          - {order_id: 2, amount: 20.0, updated_at: "2026-01-01 10:05:00", op: c}
      - input: ref('order_events')
        rows:
          - {order_id: 1, amount: 12.5, updated_at: "2026-01-02 09:00:00", op: u}
          - {order_id: 2, amount: 20.0, updated_at: "2026-01-02 09:00:00", op: d}
    expect:
      rows:
        - {_row_kind: -U, order_id: 1, amount: 10.5}
        - {_row_kind: +U, order_id: 1, amount: 12.5}
        - {_row_kind: -D, order_id: 2, amount: 20.0}
  - name: the_newest_event_of_an_order_wins
    model: orders
    config: {meta: {tablestore: {result: table}}}
    given:
      - input: ref('order_events')
        rows:
          - {order_id: 1, amount: 12.5, updated_at: "2026-01-02 09:00:00", op: u}
          - {order_id: 1, amount: 10.5, updated_at: "2026-01-01 10:00:00", op: c}
    expect:
      rows: [{order_id: 1, amount: 12.5}]
"""
_PROJECT = """name: NAME
version: "1.0.0"
profile: NAME
"""
_PROFILE = """NAME:
  target: dev
  outputs:
    dev:
      type: tablestore
      warehouse: ./warehouse
      schema: demo
      threads: 2
"""
_IGNORED = "target/\nlogs/\nwarehouse/\n"


def project_name(folder: str) -> str:
    """A name that dbt accepts, from that of a folder: `My shop` becomes `my_shop`."""
    name = re.sub(r"[^a-z0-9_]+", "_", folder.lower()).strip("_")
    return name if name and not name[0].isdigit() else f"project_{name}".rstrip("_")


def project_files(name: str, brokers: str | None) -> Mapping[str, str]:
    """Path in the folder → text. With `brokers` the model publishes to the topic `orders`."""
    log = "" if brokers is None else f"      log: {{kafka.bootstrap.servers: {json.dumps(brokers)}}}\n"
    return {
        "dbt_project.yml": _PROJECT.replace("NAME", name),
        "profiles.yml": _PROFILE.replace("NAME", name) + log,
        "seeds/order_events.csv": _SEED,
        "models/orders.sql": _MODEL.replace("LOG", "" if brokers is None else _LOG),
        "models/orders.yml": _TESTS,
        ".gitignore": _IGNORED,
    }
