"""An ingest in a process of its own, so that it can be killed: argv = warehouse, brokers, spec as JSON, follow."""

from __future__ import annotations

import json
import sys

from tablestore_engine.api import Engine, IngestSpec


def main(warehouse: str, url: str, spec: str, follow: str = "") -> None:
    """Print the report as one JSON line."""
    with Engine(warehouse, log={"kafka.bootstrap.servers": url}) as engine:
        report = engine.ingest(IngestSpec(**json.loads(spec)), follow=bool(follow))
    print(json.dumps(report.record()))


if __name__ == "__main__":
    main(*sys.argv[1:])
