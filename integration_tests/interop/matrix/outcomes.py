"""What became of a table: right, refused by somebody for a known reason, a known fault of another engine, or wrong.

INVARIANT  an error is a refusal only if it was judged once: its text is in REFUSALS. Everything else is wrong.
"""

from __future__ import annotations

import logging
import re
from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass

_LOG = logging.getLogger(__name__)
RIGHT = "right"


@dataclass(frozen=True)
class Known:
    """`text`: a regular expression of an error or a difference; `reason`: as docs/interop.md says it; `feature`: only
    of tables that have it; `only`: only for this engine and direction, as `java stream, turns`.
    """

    text: str
    reason: str
    feature: str = ""
    only: str = ""


REFUSALS: tuple[Known, ...] = (
    Known(r"TS1127.*file format \(", "TS1127: this engine writes Parquet files only"),
    Known(
        r"TS1127.*changelog producer \(", "TS1127: Paimon refuses `full-compaction` beside deletion vectors"
    ),
    Known(
        r"IllegalArgumentException: Can't extract bucket from row in dynamic bucket mode",
        "Paimon's Java library assigns no buckets across partitions by itself, its connectors do",
        "keys across partitions",
    ),
    Known(
        r"CROSS_PARTITION primary-key writes require",
        "pypaimon 2.1.0 writes no keys across partitions",
        "keys across partitions",
    ),
    Known(
        r"NoClassDefFoundError: org/rocksdb",
        "Flink keeps keys of all partitions in RocksDB, which is missing here",
        "keys across partitions",
    ),
    Known(
        r"pypaimon 2.*NotImplementedError: merge-engine",
        "pypaimon 2.1.0 has no sequence groups, and no options for deletes beside `partial-update` or `aggregation`",
    ),
    Known(
        r"pypaimon-rust 0.*uses merge-engine=\S+ with deletion-vectors",
        "pypaimon-rust 0.4.0 writes no such merge engine with deletion vectors",
    ),
    Known(
        r"TS1670",
        "TS1670: readers of changes begin with all rows only when none waits in level 0",
    ),
    Known(
        r"pypaimon 2.*do not match \['null', \{'type': 'array'",
        "pypaimon 2.1.0 writes no NULL inside arrays into Avro files",
        "Avro",
    ),
    Known(
        r"pypaimon-rust 0.*ORC compression 'zstd' is not supported",
        "pypaimon-rust 0.4.0 writes no ORC files with zstd",
        "ORC",
    ),
    Known(
        r"paimon-spark 0.*ArithmeticException: long overflow",
        "paimon-spark 0.9.0 fails on some timestamps in Avro files of newer versions",
        "Avro",
    ),
    Known(r"TS1309", "TS1309: this engine writes keyed tables with deletion vectors only"),
    Known(r"TS1377", "TS1377: this engine reads no timestamps in ORC files"),
    Known(
        r"TS1669", "TS1669: without a changelog producer no changes follow from the rows of this merge engine"
    ),
    Known(
        r"paimon-spark.*(Size not match|Unable to read deletion vectors)",
        "paimon-spark 0.9.0 reads no deletion vectors of 64 bits",
        "deletion vectors of 64 bits",
    ),
    Known(
        r"pypaimon 2.*Invalid magic number: 3520280932",
        "pypaimon 2.1.0 reads no deletion vectors of 64 bits",
        "deletion vectors of 64 bits",
    ),
)
FAULTS: tuple[Known, ...] = (
    *(
        Known(
            r"newest: expected (\d+) rows, got \1; .*expected ('new'|7), got None",
            f"{who} stores NULL where the column has a default",
            "defaults of columns",
            cell,
        )
        for cell, who in (
            ("pypaimon, ", "pypaimon 2.1.0"),
            ("rust, ", "pypaimon-rust 0.4.0"),
            ("spark, ", "paimon-spark 0.9.0"),
        )
    ),
    Known(
        r"OrcTimestampColumnVector",
        "Paimon's Java library fails on timestamps before 1970 in ORC files of pypaimon",
        "ORC",
        "pypaimon, theirs",
    ),
    Known(
        r"java 1.4.2, newest.*too much",
        "pypaimon-rust 0.4.0 writes a key into a second partition and leaves it in the first one",
        "keys across partitions",
        "rust, theirs",
    ),
    Known(
        r"newest values that nothing has merged",
        "without a changelog producer, Paimon's streams have the values of each commit, merged with nothing",
        "changelog producer `none`",
        "java stream, turns",
    ),
    Known(
        r"ours, newest.*too much",
        "paimon-spark 0.9.0 puts rows into buckets by its own function, whatever `bucket-function.type` says",
        "`bucket-function.type` = `mod`",
        "spark",
    ),
    Known(
        r"java agrees|rows of.*|ours, newest.*too much",
        "pypaimon 2.1.0 puts rows into buckets by its own function, whatever `bucket-function.type` says",
        "`bucket-function.type` = `mod`",
        "pypaimon",
    ),
)


def outcome_of(work: Callable[[], object], cell: str = "", features: Collection[str] = ()) -> str:
    """RIGHT, `refused: …`, `fault: …` or `wrong: …`; `cell` is `engine, direction`."""
    try:
        work()
    except AssertionError as difference:
        return _known(FAULTS, "fault", str(difference), cell, features) or f"wrong: {str(difference)[:1200]}"
    except Exception as error:  # noqa: BLE001 - every error of an engine is an outcome
        text = f"{type(error).__name__}: {error}"
        known = _known(REFUSALS, "refused", text, cell, features) or _known(
            FAULTS, "fault", text, cell, features
        )
        if not known:
            _LOG.info("%s", text, exc_info=True)
        return known or f"wrong: {_shortened(text)}"
    return RIGHT


def _shortened(text: str) -> str:
    """The first lines, and the causes that Java names."""
    lines = text.splitlines()
    causes = [line for line in lines[3:] if line.startswith(("Caused by", "java.", "org."))]
    return "\n".join([*lines[:3], *causes[-2:]])[:1200]


def _known(reasons: Sequence[Known], word: str, text: str, cell: str, features: Collection[str]) -> str:
    for one in reasons:
        fits = cell.startswith(one.only) and (not one.feature or one.feature in features)
        if fits and re.search(one.text, text, re.DOTALL):
            return f"{word}: {one.reason}"
    return ""
