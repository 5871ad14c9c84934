"""Which of the engine's functions call which, as a small piece of work runs: for the walks and the floors of the house.

INVARIANT  the caller is the nearest function of the engine on the stack: what a library, a test or a pool of threads
           stands between is passed over, a thread's first function has no caller.
"""

from __future__ import annotations

import re
import sys
import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from types import CodeType, FrameType

ROOT = Path(__file__).resolve().parents[2]
_ENGINE = f"{ROOT}/tablestore_engine/"
_BODIES = ("<module>", "<genexpr>", "<listcomp>", "<dictcomp>", "<setcomp>")


def _floors() -> dict[str, int]:
    contract = (ROOT / ".importlinter").read_text().split("layers =\n")[1].split("exhaustive")[0]
    rows = [re.findall(r"\w+", row) for row in contract.strip().splitlines()]
    return {name: height for height, row in enumerate(reversed(rows)) for name in row}


FLOORS = _floors()


@dataclass(frozen=True)
class Call:
    """`tablestore_engine`-relative modules, as in `store.commit.commit`; `caller` is empty for a thread's first one."""

    caller: str
    callee: str
    function: str


def _module(code: CodeType) -> str | None:
    if not code.co_filename.startswith(_ENGINE):
        return None
    return code.co_filename[len(_ENGINE) : -len(".py")].replace("/", ".")


@contextmanager
def traced() -> Iterator[list[Call]]:
    """The list grows as the block runs."""
    found: list[Call] = []

    def look(frame: FrameType, event: str, _: object) -> None:
        callee = _module(frame.f_code) if event == "call" else None
        if callee is None or frame.f_code.co_name in _BODIES:
            return
        up, caller = frame.f_back, None
        while up is not None and caller is None:
            caller, up = _module(up.f_code), up.f_back
        found.append(Call(caller or "", callee, frame.f_code.co_qualname))

    before = sys.getprofile()
    threading.setprofile(look)
    sys.setprofile(look)
    try:
        yield found
    finally:
        sys.setprofile(before)
        threading.setprofile(None)


def _height(module: str) -> int:
    return FLOORS[module.split(".", maxsplit=1)[0]]


def climbs(calls: Sequence[Call]) -> list[Call]:
    """Each once, in order."""
    return [
        call for call in dict.fromkeys(calls) if call.caller and _height(call.callee) > _height(call.caller)
    ]
