"""The loop of a reader process: one JSON request per line in, one JSON answer per line out, rows as Arrow files.

Runs in a peer's own environment: imports nothing but that environment's pyarrow, the standard library and
tablestore_engine/certify/reader_program.py, which needs no more (peers.py names its folder to Python).
A request {"do": …, "location": …, "out": path, …} is answered {"ok": true, …} or {"ok": false, "error": text}.
"""

import json
import os
import sys
import traceback

import pyarrow as pa


def answer(operations):
    """Serve until end of input; `operations` is name -> function(request) -> Arrow table or plain value."""
    replies = os.fdopen(os.dup(1), "w")  # what libraries print goes to stderr, answers to the real output
    os.dup2(2, 1)
    for line in sys.stdin:
        request = json.loads(line)
        try:
            reply = {"ok": True, "value": _give(operations[request["do"]](request), request)}
        except BaseException as error:  # noqa: BLE001 - a process edge: every failure is an answer
            reply = {
                "ok": False,
                "error": f"{type(error).__name__}: {error}",
                "trace": traceback.format_exc(),
            }
        replies.write(json.dumps(reply) + "\n")
        replies.flush()


def whole(opened):
    """All rows of what a function of reader_program returns."""
    schema, batches = opened
    return pa.table({}) if schema is None else pa.Table.from_batches(batches, schema)


def _give(value, request):
    if not isinstance(value, pa.Table):
        return value
    with pa.OSFile(request["out"], "wb") as sink, pa.ipc.new_file(sink, value.schema) as writer:
        writer.write_table(value)
    return None
