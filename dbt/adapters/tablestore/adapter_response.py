"""What a write did, in the words of run_results.json and of dbt's log line.

INVARIANT  dbt asks for the dict when the model ends, and writes it when the run ends: it is one dict, kept up to date,
           because a staged model is published later, by the last of its tests.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, fields
from typing import Any

from dbt.adapters.contracts.connection import AdapterResponse

from dbt.adapters.tablestore.messages import shown
from tablestore_engine.api import WriteReport
from tablestore_engine.spi import PENDING, PUBLISHED, Publication, moment_text

_COUNTS = (
    *("rows_affected", "rows_inserted", "rows_updated", "rows_deleted", "rows_unchanged", "changelog_rows"),
    *("files_added", "bytes_added", "rows_read", "rows_out", "groups_late"),
)


@dataclass
class PublishingResponse(AdapterResponse):
    """Of a data test after which staged snapshots were published, for which dbt's time of the test counts, too."""

    publishing_seconds: float | None = None

    @classmethod
    def of(cls, response: AdapterResponse, seconds: float) -> PublishingResponse:
        """What dbt has of the test's query, with these seconds."""
        return cls(
            _message=response._message,
            code=response.code,
            rows_affected=response.rows_affected,
            publishing_seconds=seconds,
        )


@dataclass
class TablestoreResponse(AdapterResponse):
    """Lies in run_results.json under adapter_response.

    `snapshot`: "@staged" while the snapshot is staged, as `tablestore diff` takes it; `staged` is its own name.
    `published`: "true", "false" or "pending" (the table has it, its log does not yet); `reason` says why not true.
    Of a model that follows streams: `batches` it committed, `rows_read` of them (None: unknown), `rows_out` of
    the query (also those that were there already), `followed`: table → behind this snapshot (None: the beginning), up
    to this one or a staged one's name. Of SQL that
    remembers rows: `groups_late` came behind the watermark and count no more (rows of one group as one, of a join or
    DISTINCT each row), `state_rows` and `state_bytes` are kept.
    Of a changed_keys model: `evaluated` is "deltas", "affected keys" or "all rows"; `fallback` says why all rows were
    compared with a table that was there (else empty), `no_deltas` why keys were evaluated; `keys_affected` counts the
    keys; `seconds_expected` of each strategy that the query has, by sizes and earlier runs, `choice` why it was taken,
    and `keys_expected`, by earlier runs, how many keys would be affected;
    `keys_evaluated` are those for which a run with deltas evaluated the query; `moment` is the time of the run, for
    which the rows hold, if its query uses the time (ISO 8601 in UTC).
    Of a microbatch: `input` is "empty" when metadata proved that its query gives no rows, so that it was not run.
    """

    snapshot_id: int | None = None
    rows_inserted: int | None = None
    rows_updated: int | None = None
    rows_deleted: int | None = None
    rows_unchanged: int | None = None
    changelog_rows: int | None = None
    files_added: int | None = None
    bytes_added: int | None = None
    staged: str | None = None
    snapshot: str | None = None
    published: bool | str | None = None
    reason: str | None = None
    kafka_topic: str | None = None
    kafka_offsets: dict[str, list[int]] | None = None
    batches: int | None = None
    rows_read: int | None = None
    rows_out: int | None = None
    followed: dict[str, list[int | str | None]] | None = None
    groups_late: int | None = None
    state_rows: int | None = None
    state_bytes: int | None = None
    evaluated: str | None = None
    fallback: str | None = None
    keys_affected: int | None = None
    keys_evaluated: int | None = None
    no_deltas: str | None = None
    seconds_expected: dict[str, float] | None = None
    keys_expected: int | None = None
    choice: str | None = None
    moment: str | None = None
    input: str | None = None

    def __post_init__(self) -> None:
        self._live: dict[str, Any] | None = None

    def __post_serialize__(
        self, dct: dict[str, Any], context: dict[str, Any] | None = None
    ) -> dict[str, Any]:
        """dbt's dict; from now on it follows this object."""
        made: dict[str, Any] = super().__post_serialize__(dct, context)
        self._live = made
        return made

    def follow(self, newer: TablestoreResponse) -> None:
        """The model was built once more: what counts is what that did."""
        for each in fields(self):
            setattr(self, each.name, getattr(newer, each.name))
        self._refresh()

    def tell_ranges(
        self, ranges: Mapping[str, tuple[int | None, int | str]], rows: int | None, text: str
    ) -> None:
        """What a commit of a streaming model has read."""
        self.batches, self.rows_read = 1, rows
        self.rows_out = (self.rows_affected or 0) + (self.rows_unchanged or 0)
        self.followed = {name: [since, until] for name, (since, until) in ranges.items()}
        self._message = f"{self._message} · {text}"

    def tell_no_input(self) -> None:
        """A microbatch whose query was not run: file statistics prove that it has no rows."""
        self.input = "empty"
        self._message = f"{self._message} · no input, by file statistics"

    def tell_evaluated(self, evaluated: str, fallback: str, keys: int | None, no_deltas: str = "") -> None:
        """How a changed_keys model was computed."""
        self.evaluated, self.fallback, self.keys_affected = evaluated, fallback, keys
        self.no_deltas = no_deltas or None
        if self.choice is not None:
            self._message = f"{self._message} · {evaluated}: {self.choice}"

    def tell_choice(self, reason: str, seconds: Mapping[str, float], keys: int | None) -> None:
        """Why a changed_keys model is computed by its strategy; before tell_evaluated. `seconds`: by strategy."""
        self.choice, self.seconds_expected, self.keys_expected = reason, dict(seconds), keys

    def tell_moment(self, moment_ms: int) -> None:
        """Of a changed_keys model whose query uses the time; epoch milliseconds."""
        self.moment = moment_text(moment_ms)
        self._message = f"{self._message} · as of {self.moment}"

    def tell_state(self, late: int, rows: int, size: int) -> None:
        """What it remembers behind that commit."""
        self.groups_late, self.state_rows, self.state_bytes = late, rows, size

    def join(self, later: TablestoreResponse) -> None:
        """The next commit of the same model."""
        first, batches = self.followed or {}, (self.batches or 0) + (later.batches or 0)
        kept = {name: getattr(self, name) for name in _COUNTS}
        offsets = self.kafka_offsets or {}
        self.follow(later)
        for name, before in kept.items():
            now = getattr(later, name)
            setattr(self, name, None if before is None or now is None else before + now)
        self.batches = batches
        self.followed = {
            name: [first.get(name, both)[0], both[1]] for name, both in (later.followed or {}).items()
        }
        sent = {
            name: [offsets.get(name, both)[0], both[1]] for name, both in (later.kafka_offsets or {}).items()
        }
        self.kafka_offsets = {**offsets, **sent} or None
        self._message = f"{later._message} · {batches} commits"
        self._refresh()

    def mark(self, *, published: bool | str, reason: str | None = None) -> None:
        """What became of the snapshot."""
        self.published, self.reason = published, reason
        self.snapshot = self.snapshot if published is False else None
        self._refresh()

    def mark_publication(self, done: Publication) -> None:
        """The same from the engine's answer, with the snapshot and the offsets it got."""
        if done.report is not None:
            fresh = describe_commit(done.report)
            self.snapshot_id, self._message = fresh.snapshot_id, fresh._message
            self.kafka_topic, self.kafka_offsets = fresh.kafka_topic, fresh.kafka_offsets
        if done.state == PUBLISHED:
            self.mark(published=True)
        else:
            self.mark(published="pending" if done.state == PENDING else False, reason=str(done.error))

    def _refresh(self) -> None:
        live = self._live
        if live is not None:
            fresh = self.to_dict(omit_none=True)
            live.clear()
            live.update(fresh)
            self._live = live


def describe_commit(report: WriteReport | None) -> TablestoreResponse:
    """`snapshot 7 (+120 ~30 -3) · kafka orders[0] 4100..4253`, with the facts behind it."""
    if report is None:
        return TablestoreResponse(_message="OK", code="OK")
    return TablestoreResponse(
        _message=shown(report.summary()),
        code="OK",
        rows_affected=report.inserted + report.updated + report.deleted,
        snapshot_id=report.snapshot_id,
        rows_inserted=report.inserted,
        rows_updated=report.updated,
        rows_deleted=report.deleted,
        rows_unchanged=report.unchanged,
        changelog_rows=report.changelog_rows,
        files_added=report.files_added,
        bytes_added=report.bytes_added,
        staged=report.staged,
        snapshot=None if report.staged is None else "@staged",
        published=report.staged is None,
        kafka_topic=None if report.log is None else report.log.name,
        kafka_offsets=None if report.log is None else report.log.as_lists() or None,
    )
