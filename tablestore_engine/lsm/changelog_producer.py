"""Where the changelog of a keyed table comes from: the hooks that a value of `changelog-producer` decides.

CHANGE     where the changelog of a table comes from (options changelog-producer,
           changelog-producer.row-deduplicate, changelog-producer.row-deduplicate-ignore-fields)
Hooks      merge   rows meet stored ones: does the commit carry what that changed?        (store.merge.merge_on_write)
           read    a snapshot has no changelog files: are its level-0 rows the changes?   (store.changelog)
           full    a stream begins with the whole table: which levels have been sent by then?   (store.read.scan)
           input   rows come: does the commit carry them?                             (store.merge.input_changelog)
           compact none asks: a compaction of merge-on-write changes no visible row. The producer that would answer,
                   full-compaction, is of tables that others write: Paimon refuses it beside deletion vectors
INVARIANT  each change is sent once: a producer that sends at the merge, or later, sends nothing of rows before it.
"""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class ChangelogProducer:
    """`writes_at_merge`: commits carry their changelog. `reads_delta`: added rows are the changes, as they are.
    `writes_input`: commits carry the rows that came, as they came.

    `tells_late`: rows of level 0 wait for the compaction that takes them in; `tells_last`: until they reach the top.
    """

    writes_at_merge: bool = False
    reads_delta: bool = False
    writes_input: bool = False
    tells_late: bool = False
    tells_last: bool = False

    @property
    def is_complete(self) -> bool:
        """Whether each change has the row before and the row after it."""
        return self.writes_at_merge or self.tells_last


PRODUCERS = {
    "none": ChangelogProducer(reads_delta=True),
    "lookup": ChangelogProducer(writes_at_merge=True, tells_late=True),
    "input": ChangelogProducer(writes_input=True),
    "full-compaction": ChangelogProducer(tells_last=True),  # its compactions write them
}


def get_producer(name: str) -> ChangelogProducer:
    """The producer of that name, however it is spelt. Which of them we write is said by format.capability."""
    return PRODUCERS.get(name.strip().lower(), ChangelogProducer())
