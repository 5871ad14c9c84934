"""How to reach Spark and how it runs a query, as a profile, a model or a user says: values, made without pyspark."""

from __future__ import annotations

import math
import os
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum


class ReadWay(StrEnum):
    """Values of `read_way`, of a profile and of SparkSettings; AUTO decides by the warehouse and the session."""

    AUTO = "auto"
    LINKS = "links"
    NATIVE = "native"
    PORTABLE = "portable"


class OutputMode(StrEnum):
    """As Spark has it; complete is no mode of a table that rows are put into."""

    UPDATE = "update"
    APPEND = "append"


@dataclass(frozen=True)
class SparkSettings:
    """How to reach Spark: `master` as Spark writes it, `conf` over our defaults, `read_way` how data files are read.

    `more_jars`: paths that a session which is started gets besides spark.jars of `conf`.

    >>> cluster = Engine("./warehouse", spark=SparkSettings("local[2]", conf={"spark.sql.shuffle.partitions": "4"}))
    """

    master: str = "local[*]"
    conf: Mapping[str, str] = field(default_factory=dict, hash=False, repr=False)  # secrets may be in it
    read_way: ReadWay = ReadWay.AUTO
    more_jars: Callable[[], Sequence[str]] = field(
        default=tuple, compare=False, repr=False
    )  # asked at the start

    @property
    def is_local(self) -> bool:
        """Whether driver and executors are this machine's one JVM."""
        return self.master.startswith("local")

    @property
    def local_cores(self) -> int:
        """Threads of a local master: `local` 1, `local[n]` n, `local[*]` all."""
        asked = re.fullmatch(r"local\[(\d+).*\]", self.master)
        if asked is not None:
            return int(asked[1])
        return 1 if self.master == "local" else os.cpu_count() or 1

    @property
    def cluster_cores(self) -> int | None:
        """Cores that the application has on a cluster, where its conf limits them; None: as many as there are."""
        return _number(self.conf.get("spark.cores.max")) or _number(
            self.conf.get("spark.executor.instances"), self.conf.get("spark.executor.cores", "1")
        )

    @property
    def is_loopback(self) -> bool:
        """Whether everything is reached through 127.0.0.1."""
        return self.is_local or "//127.0.0.1" in self.master or "//localhost" in self.master


def _number(*texts: object) -> int | None:
    """The product of whole numbers; None when one is none."""
    numbers = [int(str(text)) for text in texts if str(text).isdecimal()]
    return math.prod(numbers) if len(numbers) == len(texts) and all(numbers) else None
