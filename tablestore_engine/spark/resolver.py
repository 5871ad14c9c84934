"""Names in SQL -> our tables and views: whatever a statement names is registered before Spark analyses it.

Steps      1 empty catalogs leave names, time-travel clauses become names of versioned views  2 all `a.b` of the text
           are looked up once and (re-)registered when their state moved  3 Spark analyses; TABLE_OR_VIEW_NOT_FOUND
           names one more to look up  4 files that cannot match leave the analysed plan (plan_pruning)
INVARIANT  one statement looks each name up once: it sees one snapshot per table, also through views.
INVARIANT  step 1-3 run under the session's lock; what was analysed keeps its files, so execution needs no lock.
INVARIANT  the text of a stored view that this process did not write obeys the rules of stored_sql before Spark has it.
INVARIANT  a versioned name (`demo__s7.orders`) is immutable; a plain name is re-registered when its state moves.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import replace
from datetime import tzinfo
from functools import partial
from pathlib import Path

from py4j.protocol import Py4JError
from pyspark.errors import AnalysisException, PySparkException
from pyspark.sql import DataFrame, SparkSession

from tablestore_engine.catalog.name_lookup import NameLookup
from tablestore_engine.catalog.resolved_names import (
    NO_OVERRIDES,
    Meaning,
    Overrides,
    ResolvedFunction,
    ResolvedSystemView,
    ResolvedTable,
    ResolvedView,
)
from tablestore_engine.errors import FixRequest, TablestoreError, Unsupported
from tablestore_engine.runtime.moments import read_zone
from tablestore_engine.spark import spark_errors
from tablestore_engine.spark.hidden_tables import HiddenTables
from tablestore_engine.spark.kept_frames import analyzed_once
from tablestore_engine.spark.key_reads import KeyReads
from tablestore_engine.spark.local_changes import LocalChanges
from tablestore_engine.spark.missing_names import (
    DEFAULT_DATABASE,
    is_missing_name,
    missing_name,
    no_such_table,
)
from tablestore_engine.spark.read_way import ChosenReads
from tablestore_engine.spark.run_time_plan import frame_at_moment
from tablestore_engine.spark.session_functions import (
    create_text,
    expanded,
    forget_function,
    is_registered,
    list_calls,
    note_registered,
)
from tablestore_engine.spark.session_names import Name, digest, names_of_application
from tablestore_engine.spark.single_task import in_one_task
from tablestore_engine.spark.spark_internals import analyzed_sql
from tablestore_engine.spark.statement_names import StatementNames, function_key, too_deep
from tablestore_engine.spark.stored_sql import StoredSql
from tablestore_engine.spark.system_relations import find_relation, spark_name
from tablestore_engine.sql.as_of_clause import plain_words, qualified_names, rewrite
from tablestore_engine.sql.empty_catalog import drop_empty_catalogs
from tablestore_engine.sql.scanner import quote_name, quote_string
from tablestore_engine.sql.system_names import find_system_name, rename_system_names
from tablestore_engine.sql.table_version import TableVersion, split_database

_ROUNDS_MAX = 200
_VIEW_DEPTH_MAX = 50
Make = Callable[[SparkSession, str], DataFrame]


class Resolver:
    """Runs SQL of one warehouse in one session."""

    def __init__(
        self,
        session: SparkSession,
        names: NameLookup,
        scratch: Path,
        *,
        reads: ChosenReads,
        trusted_sql: bool = False,
    ) -> None:
        self._session = session
        self._names = names
        self.stored_sql = StoredSql(session, is_trusted=trusted_sql)
        self._registry = names_of_application(session.sparkContext.applicationId)
        self._tables = HiddenTables(session, scratch, self._registry, reads)
        self.keys = KeyReads(session, reads.fileio, self._tables)
        self.local_changes = LocalChanges(names)

    @property
    def reads(self) -> ChosenReads:
        """How Spark reads data files, and why so."""
        return self._tables.reads

    @property
    def session(self) -> SparkSession:
        """The Spark session that queries run in."""
        return self._session

    def table(self, database: str, name: str, state: ResolvedTable) -> DataFrame:
        """The rows of one pinned state, whatever the name means now."""
        with self._registry.lock:
            schema = self._register_state(database, name, state)
            frame = self._session.table(f"{quote_name(schema)}.{quote_name(name)}")
            pruner = self._tables.pruner()
            self._registry.hand_out([self._tables.key_of(state)])
        return pruner.pruned(frame)

    @contextmanager
    def in_use(self) -> Iterator[None]:
        """Work whose frames end with it. What nobody needs any more goes behind it."""
        with self._registry.in_use():
            yield
        with self._registry.lock, suppress(Py4JError, PySparkException):  # work that was done stays done
            self._tables.drop(self._registry.take_idle())

    def query(
        self, text: str, overrides: Overrides = NO_OVERRIDES, args: Mapping[str, object] | None = None
    ) -> DataFrame:
        """The rows of a query, analyzed and not run: each name is bound to one state. The caller may keep the frame."""
        with self._registry.in_use():  # until its states are handed out
            frame, meanings = self.pinned_query(text, overrides, args, by_key=True)
            with self._registry.lock:
                tables = [found for found in meanings.values() if isinstance(found, ResolvedTable)]
                self._registry.hand_out([self._tables.key_of(found) for found in tables])
        return frame

    def pinned_query(
        self,
        text: str,
        overrides: Overrides = NO_OVERRIDES,
        args: Mapping[str, object] | None = None,
        make: Make | None = None,
        *,
        by_key: bool = False,
    ) -> tuple[DataFrame, Mapping[Name, Meaning | None]]:
        """What `make` (SparkSession.sql) makes of the text, and what each name in it meant, None: not ours. `by_key`:
        rows that are found by their keys may stand in the plan in place of their table.

        REQUIRES in_use() as long as the rows are used.
        """
        with self._registry.lock:
            statement = StatementNames(self._names, overrides, self._session, self._system_view)
            text = self._prepare(text, statement, depth=0)
            make = partial(SparkSession.sql, args=dict(args)) if args else make
            analyse, seen = partial(self._analyse, text, statement, make), None if make else overrides.seen
            frame = analyzed_once(seen, text, statement.meanings, self._registry, analyse)
            if statement.calls_functions:
                frame = expanded(frame, self._session)
            if overrides.moment_ms is not None:
                frame = frame_at_moment(frame, overrides.moment_ms)
            frame = self.keys.answered(frame, statement.meanings) if by_key else frame
            pruner = self._tables.pruner()
        return pruner.pruned(frame), dict(statement.meanings)

    def query_in(
        self, session: SparkSession, text: str, overrides: Overrides
    ) -> tuple[DataFrame, Mapping[Name, Meaning | None]]:
        """The same in another session over the same catalog, whose temporary views `text` may name too.

        REQUIRES in_use() as long as the rows are used.
        """
        with self._registry.lock:
            statement = StatementNames(self._names, overrides, session, self._system_view)
            text = self._prepare(text, statement, depth=0)
            analyse = partial(self._analyse, text, statement, session=session)
            seen = overrides.seen if session is self._session else None
            frame = analyzed_once(seen, text, statement.meanings, self._registry, analyse)
            if statement.calls_functions:
                frame = expanded(frame, session)
        return frame, dict(statement.meanings)

    def whole_query(self, text: str, overrides: Overrides) -> tuple[DataFrame, Mapping[Name, Meaning | None]]:
        """The same as Spark analyzes it: no file is left out yet, each table is one View node. REQUIRES as query_in."""
        return self.query_in(self._session, text, overrides)

    def prune(self, frame: DataFrame) -> DataFrame:
        """An analyzed frame over fewer files, to be collected at once. REQUIRES in_use() and windows without ties."""
        with self._registry.lock:
            pruner = self._tables.pruner()
        return in_one_task(pruner.pruned(frame), has_ties=False)

    def prepared(self, frame: DataFrame, session: SparkSession) -> DataFrame:
        """A frame of query_in, ready to run in its session: data files in place of what stands for them."""
        with self._registry.lock:
            return self._tables.prepared(frame, session)

    def forget(self, database: str, name: str) -> None:
        """Remove a plain name from the session (its table or view was dropped or renamed)."""
        with self._registry.lock:
            if self._registry.remove((database.lower(), name.lower())):
                self._session.sql(f"drop view if exists {quote_name(database)}.{quote_name(name)}")

    def forget_function(self, database: str, name: str) -> None:
        """Remove a function from the session (it was dropped)."""
        with self._registry.lock:
            forget_function(self._registry, self._session, (database.lower(), name.lower()))

    def check_new(self, name: Name, new: ResolvedFunction | ResolvedView, overrides: Overrides) -> None:
        """Create a view or function in the session, before the warehouse has it: Spark analyzes its text.

        Raises FixRequest TS1505, TS1535, TS2141, NotFound TS1515.
        """
        with self._registry.lock:
            statement = StatementNames(self._names, overrides, self._session, self._system_view, (name, new))
            ensure = self._ensure if isinstance(new, ResolvedView) else self._ensure_function
            ensure(name, statement, depth=0)

    def _prepare(self, text: str, statement: StatementNames, *, depth: int) -> str:
        """Steps 1 and 2 for a text: all names that it can mean are registered as this statement sees them."""
        text = rewrite(
            drop_empty_catalogs(text),
            lambda parts, version: self._versioned(parts, version, statement),
            session_zone=self.session_zone,
        )
        text = rename_system_names(text, lambda *name: self._system_name(name, None, statement, depth))
        for database, name in qualified_names(text):
            self._ensure((database, name), statement, depth=depth)
        for called in list_calls(text, self._registry):
            self._ensure_function(called, statement, depth=depth)
        known = {name for database, name in self._registry.versions if database == DEFAULT_DATABASE}
        for name in known and known & {word.lower() for word in plain_words(text)}:
            self._ensure((DEFAULT_DATABASE, name), statement, depth=depth)
        return text

    def _analyse(
        self,
        text: str,
        statement: StatementNames,
        make: Make | None = None,
        session: SparkSession | None = None,
    ) -> DataFrame:
        """Step 3."""
        for _ in range(_ROUNDS_MAX):
            try:
                return (make or analyzed_sql)(session or self._session, text)
            except AnalysisException as error:
                if not is_missing_name(error):
                    raise spark_errors.translate(error) from None
                missing = missing_name(error)
                known = (missing[0].lower(), missing[1].lower())
                if known in statement.done or self._ensure(missing, statement, depth=0) is None:
                    raise no_such_table(missing, self._names.near_hint(*missing)) from None
        raise FixRequest(
            "TS1512",
            "the statement names too many tables",
            why=f"more than {_ROUNDS_MAX} names had to be looked up one by one",
            fix="write names as database.table, so that they are found before the statement is analysed",
        )

    def _ensure(self, name: Name, statement: StatementNames, *, depth: int) -> str | None:
        """Register a plain name as this statement sees it; its version, or None when it names nothing of ours."""
        written, name = name, (name[0].lower(), name[1].lower())
        if name in statement.done and statement.is_bound(written):
            return statement.done[name]
        found = statement.lookup(*written)
        if found is not None:
            statement.bind(written, found)
        if name in statement.done and (found is None or statement.done[name] is not None):
            return statement.done[name]
        statement.meanings[name] = found
        if found is None:
            statement.done[name] = None
            self.forget(*name)
            return None
        if isinstance(found, ResolvedTable):
            version, registered = found.version, self._tables.key_of(found)
            statement.done[name] = version
            if self._registry.versions.get(name) != registered:
                self._tables.register(*name, found)
        else:
            version = registered = self._ensure_view(name, found, statement, depth=depth)
        self._registry.put(name, registered, is_fixed=split_database(name[0])[1] is not None)
        statement.done[name] = version
        return version

    def _ensure_view(self, name: Name, view: ResolvedView, statement: StatementNames, *, depth: int) -> str:
        """Register a stored view after the names in its text; it is made again when their columns changed."""
        if depth > _VIEW_DEPTH_MAX:
            raise too_deep(name, _VIEW_DEPTH_MAX)
        with statement.inside(name, is_view=True):
            text = self._prepare(view.sql, statement, depth=depth + 1)
        full = f"{quote_name(name[0])}.{quote_name(name[1])}"
        comment = f" comment {quote_string(view.comment)}" if view.comment else ""
        definition = f"create or replace view {full}{comment} as {text}"
        if not view.is_own:  # also when it is registered: another engine of the session may trust more
            self.stored_sql.check_view(
                ".".join(name),
                definition,
                lambda *found: statement.lookup(*found) is not None,
                lambda *found: statement.find_function(found) is not None,
            )
        version = "view-" + digest([text, view.comment or "", *statement.shapes(text)])
        if self._registry.versions.get(name) != version:
            self._tables.ensure_database(name[0])
            try:
                self._analyse(definition, statement)
            except TablestoreError:  # Spark drops the old view before it looks at the new one's column names
                self.forget(*name)
                raise
        return version

    def _system_view(self, view: ResolvedSystemView, statement: StatementNames) -> str:
        """Its rows are read now; stored views have the columns that this statement sees."""

        def columns_of(database: str, name: str) -> list[tuple[str, str, bool]]:
            try:
                if self._ensure((database, name), statement, depth=0) is None:
                    return []
                shape = self._session.table(f"{quote_name(database)}.{quote_name(name)}").schema
            except TablestoreError:  # a view with errors has no columns
                return []
            return [(one.name, one.dataType.simpleString(), one.nullable) for one in shape.fields]

        return self._tables.system_rows(view.columns, view.rows(columns_of))

    def _ensure_function(self, written: Name, statement: StatementNames, *, depth: int) -> None:
        """Register a function as this statement sees it, after the names in its text."""
        name = (written[0].lower(), written[1].lower())
        found, key = statement.find_function(written), function_key(written)
        if found is None:
            if key not in statement.done:
                forget_function(self._registry, statement.session, name)
            return
        statement.bind((written[0], key[1]), found)
        with statement.inside(name):
            if key in statement.done:
                return
            text = self._prepare(found.sql, statement, depth=depth + 1)
        definition = create_text(name, text)
        if not found.is_own:
            self.stored_sql.check_function(
                ".".join(name),
                definition,
                lambda *one: statement.lookup(*one) is not None,
                lambda *one: statement.find_function(one) is not None,
            )
        version = digest([definition, *statement.shapes(text)])
        if not is_registered(self._registry, statement.session, name, version):
            self._tables.ensure_database(name[0])
            for session in dict.fromkeys((self._session, statement.session)):
                self._analyse(definition, statement, session=session)
            note_registered(self._registry, statement.session, name, version)
        statement.done[key], statement.meanings[key] = version, found

    def _versioned(self, parts: tuple[str, ...], version: TableVersion, statement: StatementNames) -> str:
        """Register the selected state under its versioned name; that name, quoted."""
        database, name = parts[-2] if len(parts) > 1 else DEFAULT_DATABASE, parts[-1]
        if find_system_name(name) is not None:
            return self._system_name((database, name), version, statement, 0)
        found = statement.lookup(database, name, version)
        if found is None:
            raise no_such_table((database, name), self._names.near_hint(database, name))
        if isinstance(found, ResolvedView):
            raise Unsupported(
                "TS1514",
                f"view {database}.{name} has no {version}",
                why="a view is stored text; only tables have snapshots",
                fix="travel in the tables that the view reads",
            )
        schema = self._register_state(database, name, found)
        statement.bind((schema, name), found)
        statement.done[schema, name.lower()] = found.version
        statement.meanings[schema, name.lower()] = replace(found, is_clause=True)
        return f"{quote_name(schema)}.{quote_name(name)}"

    def _system_name(
        self, name: Name, version: TableVersion | None, statement: StatementNames, depth: int
    ) -> str:
        """Register a system table or branch; its name in Spark's catalog, quoted."""
        found, place = find_relation(name, version, statement), spark_name(name, version)
        statement.bind(place, found)
        if place not in statement.done:
            if isinstance(found, ResolvedTable):
                registered = self._tables.key_of(found)
                if self._registry.versions.get(place) != registered:
                    self._tables.register(*place, found)
            else:
                registered = self._ensure_view(place, found, statement, depth=depth)
            self._registry.put(place, registered, is_fixed=True)
            statement.done[place], statement.meanings[place] = registered, found
        return f"{quote_name(place[0])}.{quote_name(place[1])}"

    def _register_state(self, database: str, name: str, state: ResolvedTable) -> str:
        """Register under the versioned database; its name."""
        schema, key = f"{database}__{state.label}".lower(), name.lower()
        registered = self._tables.key_of(state)
        if self._registry.versions.get((schema, key)) != registered:
            self._tables.register(schema, name, state)
        self._registry.put((schema, key), registered, is_fixed=True)
        return schema

    def session_zone(self) -> tzinfo:
        """The zone of timestamps without one. Raises FixRequest TS2155."""
        return read_zone(str(self._session.conf.get("spark.sql.session.timeZone", "UTC")))
