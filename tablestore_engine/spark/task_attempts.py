"""Tasks that Spark may run twice at the same time: which work must then stay out of them.

A retry     begins when Spark has given the attempt before it up: the later attempt may fence it.
Speculation two attempts run, and the first that ends is the answer. Of two that send to one shard of a log the fenced
            one ends first: its error would be the answer, and the other attempt would be killed in the middle.
INVARIANT  files have a new uuid for each attempt, so writes and compactions run under speculation; messages do not.
"""

from __future__ import annotations

from pyspark import SparkContext


def may_speculate(context: SparkContext) -> bool:
    """Whether Spark starts a second attempt beside one that runs (spark.speculation)."""
    return str(context.getConf().get("spark.speculation", "false")).lower() == "true"
