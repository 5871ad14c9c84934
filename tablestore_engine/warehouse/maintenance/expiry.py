"""Expiry of the tables of a warehouse: behind each commit what is due, and what somebody asks for.

CHANGE     when snapshots expire (option tablestore.expire-on-commit)
Steps      behind a commit: tags of periods that have ended → does the table want more → partitions that are due (a
           commit) → how far this process knows its log to be → store.expiry.expire_snapshots
           when asked: the log is asked how far it is → tags whose time is over → store.expiry.expire_snapshots
INVARIANT  what the log of a table lacks never expires; a log whose progress is not known keeps everything.
INVARIANT  a commit that stands is reported as one: when expiring behind it fails, the report says so, and no file that
           anybody needs is gone. Only a log that lacks the expiry of partitions is an error: work is left to do.
"""

# ruff: noqa: PLC0415 - imports in functions: a table that needs none of it loads none of it (decision 0137)
from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

from tablestore_engine.catalog.identifier import Identifier
from tablestore_engine.catalog.open_tables import OpenTables
from tablestore_engine.errors import FixRequest, PublishPending, Stopped, TablestoreError
from tablestore_engine.format.layout import MAIN_BRANCH
from tablestore_engine.store.metadata.seen_table import SeenTable
from tablestore_engine.store.table_store import TableStore
from tablestore_engine.store.table_traits import TableTraits
from tablestore_engine.warehouse.log.logs import Logs
from tablestore_engine.warehouse.maintenance.partition_expiry import PartitionExpiry
from tablestore_engine.warehouse.write_report import WriteReport

if TYPE_CHECKING:
    from tablestore_engine.store.expiry.expire_partitions import PartitionReport
    from tablestore_engine.store.expiry.expire_snapshots import ExpireReport
    from tablestore_engine.store.expiry.expiry_rules import Hold, NextLook
    from tablestore_engine.store.retention import Retention


@dataclass(frozen=True)
class _Looked:
    """At the partitions of a table: what went, or why not."""

    went: PartitionReport | None
    trouble: str | None = None


@dataclass(frozen=True)
class Expiry:
    stores: OpenTables
    logs: Logs
    partitions: PartitionExpiry
    _next: dict[str, tuple[str | None, Retention, NextLook]] = field(
        default_factory=dict, compare=False, repr=False
    )

    def after_commit(
        self, identifier: Identifier, report: WriteReport, *, publishes: bool = True
    ) -> WriteReport:
        """The report with what went. REQUIRES that the commit's changelog was sent, or (`publishes` False) will be.

        Raises PublishPending TS1070 when expired partitions are gone and only the log lacks that.
        """
        from tablestore_engine.store.expiry.automatic_tags import make_due_tags

        try:
            seen = report.seen
            store = self.stores.get(identifier) if seen is None else self.stores.open(identifier)
            if store.branch != MAIN_BRANCH:  # a fast-forward needs all snapshots since the branch was made
                return report
            traits = TableTraits(store.schema if seen is None else seen.schema)
            if traits.tag_rule is not None and report.snapshot_id is not None:
                report = replace(report, tags=make_due_tags(store.context, traits.tag_rule))
            report = self._mark_done(identifier, store, traits, report)
            if not traits.expires_on_commit:
                return report
            looked = self._look_at_partitions(identifier, store, traits, publishes=publishes)
            trouble = "; ".join(one for one in (report.partitions_trouble, looked.trouble) if one) or None
            report = replace(report, partitions=looked.went, partitions_trouble=trouble)
            done = self._expire(store, traits, seen, self._find_hold(identifier, traits))
        except (Stopped, PublishPending):
            raise
        except (TablestoreError, OSError) as error:
            return replace(report, not_expired=str(error))
        return report if done is None else replace(report, expired=done.snapshots)

    def _mark_done(
        self, identifier: Identifier, store: TableStore, traits: TableTraits, report: WriteReport
    ) -> WriteReport:
        """Partitions that are done by now. A mark that fails is reported, and the commit stands."""
        from tablestore_engine.store.retention import DONE_BY_COMMITS

        if report.snapshot_id is None or not traits.schema.options.keys() & DONE_BY_COMMITS:
            return report
        from tablestore_engine.store.expiry.done_partitions import mark_after_commit

        try:
            mark_after_commit(store.context, str(identifier), store.snapshots.get(report.snapshot_id))
        except (TablestoreError, OSError) as error:
            return replace(report, partitions_trouble=str(error))
        return report

    def _expire(
        self, store: TableStore, traits: TableTraits, seen: SeenTable | None, log: Hold | None
    ) -> ExpireReport | None:
        """What went; None when the look before this one says that nothing can go yet."""
        rules = traits.retention
        if seen is None or seen.snapshot is None:
            return store.expire(rules, log=log)
        known = self._next.get(store.location)
        if known is not None and known[:2] != (seen.identity, rules):
            known = None
        if known is not None and not known[2].is_due(seen.snapshot.id, store.runtime.now_ms()):
            return None
        done = store.expire(rules, log=log, seen=seen)
        self._next.pop(store.location, None)
        if done.again is not None and log is None and rules.consumer_idle_ms is None:
            self._next[store.location] = (seen.identity, rules, done.again)
        return done

    def _look_at_partitions(
        self, identifier: Identifier, store: TableStore, traits: TableTraits, *, publishes: bool
    ) -> _Looked:
        """Its trouble is no reason to keep old snapshots, but for a log that lacks a commit by now."""
        try:
            return _Looked(self.partitions.when_due(identifier, store, traits, publishes=publishes))
        except (Stopped, PublishPending):
            raise
        except (TablestoreError, OSError) as error:
            return _Looked(None, str(error))

    def run(
        self,
        identifier: Identifier,
        *,
        keep: int | None = None,
        older_than_ms: int | None = None,
        dry_run: bool = False,
    ) -> ExpireReport:
        """Expire now, without limit. Raises FixRequest TS1088, TS1700, TS1701; TS17xx, TS139x: nothing was deleted.

        `keep`: only so many of the newest stay; `older_than_ms`: what was the table within this time stays too;
        neither: as the table's options say.
        """
        from tablestore_engine.store.expiry.automatic_tags import expire_tags

        check_request(identifier, keep, older_than_ms)
        store = self.stores.get(identifier)
        if not dry_run:
            store.context.guard.check()
        rules = wanted_rules(TableTraits(store.schema).retention, keep, older_than_ms)
        log = self._ask_hold(identifier)
        tags = expire_tags(store.context, dry_run=dry_run)
        return replace(store.expire(rules, log=log, dry_run=dry_run), tags=tags)

    def _find_hold(self, identifier: Identifier, traits: TableTraits) -> Hold | None:
        """What this process knows from publishing; asks nobody."""
        from tablestore_engine.store.expiry.expiry_rules import Hold

        if not traits.has_log:
            return None
        publisher = self.logs.find_publisher(identifier)
        reached = None if publisher is None else publisher.reached
        return Hold(0, "how far the log is was not asked") if reached is None else _hold_at(reached)

    def _ask_hold(self, identifier: Identifier) -> Hold | None:
        publisher = self.logs.find_publisher(identifier)
        return None if publisher is None else _hold_at(publisher.check(self.stores.get(identifier)))


def check_request(identifier: Identifier, keep: int | None, older_than_ms: int | None) -> None:
    """Raises FixRequest TS1088."""
    if (keep is not None and keep < 1) or (older_than_ms is not None and older_than_ms < 0):
        raise FixRequest(
            "TS1088",
            f"snapshots of {identifier} cannot expire like that",
            why="the time is negative" if keep is None or keep >= 1 else f"{keep} snapshots were to stay",
            fix="keep 1 or more snapshots; a time is 0 or more",
        )


def wanted_rules(rules: Retention, keep: int | None, older_than_ms: int | None) -> Retention:
    """A number alone counts without regard to age, a time alone leaves the table's least number; pure."""
    if older_than_ms is not None:
        least = rules.keep_min if keep is None else keep
        return replace(rules, keep_min=least, keep_max=None, retained_ms=older_than_ms, limit=None)
    if keep is not None:
        return replace(rules, keep_min=keep, keep_max=keep, limit=None)
    return replace(rules, limit=None)


def _hold_at(published: int) -> Hold:
    """The newest published one stays too: its commit tells that log and table have the same history."""
    from tablestore_engine.store.expiry.expiry_rules import Hold

    return Hold(published, f"the log has snapshots up to {published}")
