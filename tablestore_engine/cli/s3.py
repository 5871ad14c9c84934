"""`tablestore s3 start|stop|status`: the S3 server for development.

Steps      start: compile versitygw once, start it, create the bucket `tablestore`, print the settings of the profile
           stop: end the one we started
INVARIANT  --json prints one object; without it, lines a person can read. The secret key is never printed: the file
           of the credentials has it.
"""

from __future__ import annotations

import argparse
import shlex
from collections.abc import Mapping

from tablestore_engine.cli.command_parser import add_data_dir
from tablestore_engine.cli.output import print_result, say
from tablestore_engine.devservers.s3_requests import REGION
from tablestore_engine.devservers.s3_server import (
    S3ServerInfo,
    find_s3_server,
    make_bucket,
    start_s3_server,
    stop_s3_server,
)

BUCKET = "tablestore"
_SHOWN = """S3 server at {url} (process {pid}, data {data_dir}, log {log}); stop it with: tablestore s3 stop
in the profile:
  warehouse: {warehouse}
  storage:
{storage}
in the shell, before dbt or tablestore runs (it exports AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY):
  source {credentials}"""


def _facts(info: S3ServerInfo) -> dict[str, object]:
    """What users are shown; the secret key is left out."""
    return {
        "url": info.url,
        "pid": info.pid,
        "data_dir": info.data_dir,
        "log": info.log,
        "credentials": info.credentials,
        "warehouse": f"s3://{BUCKET}/warehouse",
        "storage": storage_settings(info.url),
    }


def storage_settings(url: str) -> Mapping[str, object]:
    """`storage:` of a profile whose warehouse lies on the server at `url`."""
    return {"endpoint": url, "region": REGION, "path_style": True}


def _text(facts: Mapping[str, object]) -> str:
    storage = facts["storage"]
    assert isinstance(storage, Mapping)
    lines = [f"    {name}: {str(value).lower()}" for name, value in storage.items()]
    shown = {"storage": "\n".join(lines), "credentials": shlex.quote(str(facts["credentials"]))}
    return _SHOWN.format(**{**facts, **shown})


def _print(info: S3ServerInfo | None, *, as_json: bool) -> None:
    facts = None if info is None else _facts(info)
    print_result(facts, "not running" if facts is None else _text(facts), as_json=as_json)


def _start(arguments: argparse.Namespace) -> int:
    info = start_s3_server(arguments.data_dir, port=arguments.port, say=say)
    make_bucket(info, BUCKET)
    _print(info, as_json=arguments.json)
    return 0


def _stop(arguments: argparse.Namespace) -> int:
    stopped = stop_s3_server(arguments.data_dir)
    text = "stopped" if stopped else "no S3 server was running"
    print_result({"stopped": stopped}, text, as_json=arguments.json)
    return 0


def _status(arguments: argparse.Namespace) -> int:
    info = find_s3_server(arguments.data_dir)
    _print(info, as_json=arguments.json)
    return 0 if info else 1


_ACTIONS = {"start": _start, "stop": _stop, "status": _status}


def run(arguments: argparse.Namespace) -> int:
    return _ACTIONS[arguments.action](arguments)


def _port(text: str) -> int:
    if not text.isdecimal() or not 0 < int(text) < 1 << 16:
        raise argparse.ArgumentTypeError(f"expected a number from 1 to 65535, got {text!r}")
    return int(text)


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("action", choices=sorted(_ACTIONS))
    add_data_dir(parser, "the server's data")
    parser.add_argument(
        "--port",
        type=_port,
        help="start: port on 127.0.0.1 (default: that of the last start, else a free one)",
    )
    parser.add_argument("--json", action="store_true", help="print JSON")
