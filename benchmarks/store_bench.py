"""What benchmarks on an object store share: a server with a bucket, their sizes, and where figures go."""

from __future__ import annotations

import argparse
import os
import tempfile
from collections.abc import Callable, Mapping
from pathlib import Path

from benchmarks.record import keep
from tablestore_engine.devservers.s3_requests import REGION
from tablestore_engine.devservers.s3_server import make_bucket, start_s3_server, stop_s3_server

_BUCKET = "bench"
Place = Callable[[str], str]  # name of a warehouse → its address


def run_on_server(
    description: str | None, name: str, measure: Callable[[Place, int, Path], Mapping[str, object]]
) -> None:
    """Measure on a new server and record; `--small`: 50,000 rows instead of 2 M, and nothing is recorded.

    `measure` gets addresses, the number of rows and a folder; what it gives stands under `name`.
    """
    parser = argparse.ArgumentParser(description=description)
    parser.add_argument("--small", action="store_true", help="50,000 rows, nothing recorded")
    is_small = parser.parse_args().small
    count = 50_000 if is_small else 2_000_000
    with tempfile.TemporaryDirectory() as text:
        work = Path(text)
        server = start_s3_server(work / "s3", say=print)
        try:
            os.environ["AWS_ACCESS_KEY_ID"] = server.access_key
            os.environ["AWS_SECRET_ACCESS_KEY"] = server.secret_key
            make_bucket(server, _BUCKET)
            settings = f"endpoint={server.url}&region={REGION}"
            found = measure(lambda place: f"s3://{_BUCKET}/{place}?{settings}", count, work)
        finally:
            stop_s3_server(work / "s3")
    if not is_small:
        keep(name, {"rows": count, **found})
