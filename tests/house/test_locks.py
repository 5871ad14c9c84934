"""House rule: every lock of the engine and of the adapter has a rank, so that its order is checked."""

from __future__ import annotations

import re
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]


def test_locks_are_made_in_one_place() -> None:
    """Only runtime/locks.py makes bare locks; whatever else needs one takes an OrderedLock with its rank."""
    made = [
        str(path.relative_to(ROOT))
        for folder in ("tablestore_engine", "tablestore_demo", "dbt")
        for path in sorted((ROOT / folder).rglob("*.py"))
        if re.search(
            r"threading\.(R?Lock|Condition|Semaphore)\(|default_factory=threading\.R?Lock", path.read_text()
        )
    ]
    assert made == ["tablestore_engine/runtime/locks.py"]
