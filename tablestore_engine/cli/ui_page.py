"""`tablestore ui`: serves the page of a warehouse on 127.0.0.1 until Ctrl-C. Read-only, no JVM."""

from __future__ import annotations

import argparse
import os
import sys
import threading
import webbrowser
from collections.abc import Mapping

from tablestore_engine.cli.output import print_json, say, write_out
from tablestore_engine.cli.warehouse_choice import add_brokers, add_place, open_engine
from tablestore_engine.spi import SYSTEM, stopped_by_signals
from tablestore_engine.ui.page_answers import PageAnswers
from tablestore_engine.ui.page_server import PageServer


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--port", type=int, default=0, metavar="N", help="port (default: a free one)")
    parser.add_argument("--no-open", action="store_true", help="print the address, open no browser")
    add_place(parser, name=None)
    add_brokers(parser)


def run(arguments: argparse.Namespace) -> int:
    with open_engine(arguments) as engine, stopped_by_signals() as stop:
        server = PageServer(PageAnswers(engine, SYSTEM.now_ms), arguments.port)
        serving = threading.Thread(target=server.serve_forever, name="page", daemon=True)
        serving.start()
        try:
            if arguments.json:
                print_json({"address": server.address, "warehouse": engine.warehouse})
            else:
                write_out(server.address)
                say("Ctrl-C ends it; the address is only for you")
            if not arguments.no_open and sys.stdout.isatty() and has_desktop(os.environ, sys.platform):
                webbrowser.open(server.make_opening())
            while not stop.wait(1.0):
                pass
        finally:
            server.shutdown()
            server.server_close()
    return 0


def has_desktop(environ: Mapping[str, str], platform: str) -> bool:
    """Whether a browser has a window to open: one in the terminal would take the place of this command."""
    return platform == "darwin" or bool(environ.get("DISPLAY") or environ.get("WAYLAND_DISPLAY"))
