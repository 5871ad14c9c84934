"""Parts of the page; an error in one part does not affect the others.

INVARIANT  what one part cannot read is shown in its place, with the code and the fix; the other parts are there.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from tablestore_engine.display import visible
from tablestore_engine.errors import TablestoreError


@dataclass(frozen=True)
class PartTrouble:
    """`code` is empty for an error that is not the engine's."""

    code: str
    what: str
    why: str
    fix: str


@dataclass(frozen=True)
class PagePart:
    """Either the value, which `page_json` can render, or the trouble."""

    value: object = None
    trouble: PartTrouble | None = None

    def as_record(self) -> dict[str, object]:
        if self.trouble is None:
            return {"value": self.value}
        one = self.trouble
        return {"trouble": {"code": one.code, "what": one.what, "why": one.why, "fix": one.fix}}


def read_part(read: Callable[[], object]) -> PagePart:
    """What `read` returns, or why it cannot."""
    try:
        return PagePart(read())
    except Exception as error:  # noqa: BLE001 - a part that cannot be read must not take the page with it
        return PagePart(trouble=explain_trouble(error))


def explain_trouble(error: Exception) -> PartTrouble:
    """Cause and next step, in one line each."""
    if isinstance(error, TablestoreError):
        return PartTrouble(error.code, visible(error.what), visible(error.why), visible(error.fix))
    if isinstance(error, OSError):
        why = error.strerror or str(error)
        return PartTrouble("", "the storage refuses", visible(why), "check the storage and reload the page")
    why = visible(f"{type(error).__name__}: {error}")
    return PartTrouble(
        "", "this part cannot be shown", why, "run tablestore verify on the table; report this text"
    )
