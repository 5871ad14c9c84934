"""Options of Paimon that this engine does not follow: refused, since they would be stored without effect.

INVARIANT  a feature whose promise a write of ours would break on another engine's table is in format/capability.py too.
"""

from __future__ import annotations

import re
from dataclasses import dataclass


@dataclass(frozen=True)
class NotBuilt:
    """`keys`: a regular expression of whole keys; `off`: values that ask for nothing, in lower case."""

    keys: str
    why: str
    off: tuple[str, ...] = ()
    fix: str = "leave it out"

    def asks(self, key: str, value: str) -> bool:
        return re.fullmatch(self.keys, key) is not None and value.strip().lower() not in self.off


_OFF = ("false",)
NOT_BUILT = (
    # files and metadata that readers of other systems expect
    NotBuilt(
        r"metadata\.iceberg\.(?!(storage|format-version|catalog)\Z).+",
        "Iceberg metadata follows metadata.iceberg.storage, .format-version and .catalog alone",
        fix="leave it out; a catalog has its address and rights in the configuration of pyiceberg, and "
        "metadata.iceberg.catalog names it",
    ),
    NotBuilt(r"manifest\.format", "manifests are Avro files", ("avro",)),
    NotBuilt(r"index-file-in-data-file-dir", "index files are in the folder index", _OFF),
    NotBuilt(
        r"file-index\.(?!(bloom-filter\.(columns|.+\.(items|fpp))|bitmap\.columns|in-manifest-threshold|"
        r"read\.enabled)\Z).+",
        "file indexes are bloom filters and bitmaps of the current versions",
    ),
    NotBuilt(r"global-index\..+", "no global index is built", _OFF),
    NotBuilt(
        r"clustering\.(?!(columns|strategy|incremental)\Z).+",
        "rows are sorted by compactions of whole partitions, not by writers",
        ("false", "global-sort"),
    ),
    NotBuilt(r"metastore\..+", "tables are in a file system catalog, which informs no metastore", _OFF),
    # what commits and tags are followed by
    NotBuilt(
        r"(commit|tag)\.callbacks?(\..+)?|commit\.callback\..+", "no Java class is called after a commit"
    ),
    NotBuilt(
        r"tag\.(period-formatter|creation-period-duration)",
        "the name of such a tag can be a number, which would be taken for the id of a snapshot",
        ("with_dashes",),
    ),
    NotBuilt(
        r"tag\.(automatic-completion|batch\..+|create-success-file|callback.*)",
        "commits make tags by the time of their snapshot, one for a snapshot, and no file beside them",
        ("false",),
    ),
    NotBuilt(
        r"partition\.mark-done(-action\.(custom\.class|mode)|\.recover-from-state)",
        "partitions are marked by a file and a report, by the time of their files; no Java class is called",
        ("false", "process-time"),
    ),
    NotBuilt(
        r"changelog\.(num-retained\.(min|max)|time-retained)",
        "a changelog expires with its snapshot",
        fix="keep snapshots for longer (snapshot.time-retained), or give the reader a consumer id",
    ),
    # which rows and changes there are
    NotBuilt(
        r"fields\..+\.(nested-key-null-strategy|nested-sequence-field)",
        "no merge engine that is built reads it",
        _OFF,
    ),
    NotBuilt(
        r"streaming-read-(overwrite|append-overwrite)",
        "readers that follow a table always get the changes of an overwrite",
        ("true",),
    ),
    NotBuilt(r"incremental-between.*", "it would make every read of the table a read of some changes"),
    NotBuilt(r"branch", "it would make every read of the table a read of that branch", ("main",)),
    NotBuilt(
        r"consumer-id", "a reader gives its own consumer id", fix="give it to the reader: consumer_id='…'"
    ),
    NotBuilt(
        r"primary-key|partition",
        "keys and partition columns are not options of a table here",
        fix="write PRIMARY KEY (…) and PARTITIONED BY (…), or primary_key and partition_by",
    ),
)


def is_named(key: str) -> bool:
    """Whether the key is one of these, whatever its value."""
    return any(re.fullmatch(one.keys, key) for one in NOT_BUILT)


def find_not_built(key: str, value: str) -> NotBuilt | None:
    """None for a value that asks for nothing, and for all other keys."""
    return next((one for one in NOT_BUILT if one.asks(key, value)), None)
