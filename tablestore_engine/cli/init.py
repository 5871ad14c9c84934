"""`tablestore init`: the quickstart as a dbt project with a profile, in an empty folder.

INVARIANT  no file is overwritten: each is created exclusively, and a folder with visible files is refused.
INVARIANT  the files are the blocks of README.md: tests/unit/cli/test_init.py compares them.
"""

from __future__ import annotations

import argparse
import json
import re
import shlex
from collections.abc import Mapping
from pathlib import Path

from tablestore_engine.cli.output import print_json, write_out
from tablestore_engine.errors import FixRequest
from tablestore_engine.fileio.storage_errors import explained

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


def add_arguments(parser: argparse.ArgumentParser) -> None:
    text = "an empty folder, created if it is missing (default: this one)"
    parser.add_argument("folder", nargs="?", default=".", help=text)
    text = "Kafka brokers: the model then publishes its changes to the topic orders"
    parser.add_argument("--brokers", metavar="HOST:PORT", help=text)
    parser.add_argument("--json", action="store_true", help="print JSON")


def run(arguments: argparse.Namespace) -> int:
    folder = Path(arguments.folder).expanduser().absolute()
    name = project_name(folder.resolve().name)
    files = project_files(name, arguments.brokers)
    with explained(str(folder)):
        check_empty(folder)
        files = {one: text for one, text in files.items() if one[0] != "." or not (folder / one).exists()}
        write_files(folder, files)
    if arguments.json:
        print_json({"folder": str(folder), "project": name, "files": list(files)})
        return 0
    write_out(f"project {name} in {folder}: {', '.join(files)}")
    cd = "" if arguments.folder == "." else f"cd {shlex.quote(arguments.folder)}\n"
    write_out(f"next:\n{cd}dbt build\ntablestore head demo.orders")
    return 0


def check_empty(folder: Path) -> None:
    """Hidden files (.git, .venv) do not count. Raises FixRequest TS1944."""
    if not folder.exists():
        return
    is_folder = folder.is_dir()
    found = sorted(path.name for path in folder.iterdir() if path.name[0] != ".") if is_folder else []
    if found or not is_folder:
        what = "it has a dbt project" if "dbt_project.yml" in found else f"it has {', '.join(found[:3])}"
        raise FixRequest(
            "TS1944",
            f"no project is created in {folder}",
            why=what if is_folder else "it is a file",
            fix="name a folder that is empty or does not exist: tablestore init FOLDER",
        )


def write_files(folder: Path, files: Mapping[str, str]) -> None:
    """Raises FileExistsError for a file that was created meanwhile."""
    for name, text in files.items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        with path.open("x", encoding="utf-8") as file:
            file.write(text)
