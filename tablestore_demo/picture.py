"""What a terminal shows: lines, and numbers per day as bars of block characters."""

from __future__ import annotations

from collections.abc import Sequence

from dbt.adapters.tablestore.messages import shown

_EIGHTHS = " ▏▎▍▌▋▊▉█"


def tell(text: str = "") -> None:
    """Print it."""
    print(shown(text), flush=True)


def bars(rows: Sequence[tuple[str, float]], *, width: int = 48) -> list[str]:
    """One line per row, the largest value filling `width` characters; negative values show no bar."""
    top = max((value for _, value in rows), default=0.0)
    label_width = max((len(label) for label, _ in rows), default=0)
    lines = []
    for label, value in rows:
        eighths = round(max(value, 0.0) / top * width * 8) if top > 0 else 0
        bar = "█" * (eighths // 8) + (_EIGHTHS[eighths % 8] if eighths % 8 else "")
        lines.append(f"{label:<{label_width}}  {bar} {value:.1f}")
    return lines
