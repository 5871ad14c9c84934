"""Ingests the change messages of dbt sources into their tables, up to the newest message.

CHANGE     when a dbt run ingests a source
INVARIANT  a source that fails keeps no other one back; the command fails all the same, behind the last.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping

from tablestore_engine.api import Engine, FixRequest, IngestSpec, TablestoreError


def ingest_sources(
    engine: Callable[[], Engine], specs: Mapping[str, IngestSpec], say: Callable[[str], None]
) -> Iterator[str]:
    """Lines as they come. Raises FixRequest TS1849."""
    failed: dict[str, TablestoreError] = {}
    for spec in specs.values():
        try:
            yield f"{spec.into}: {engine().ingest(spec, say=say).summary()}"
        except TablestoreError as error:
            failed[spec.into] = error
            say(f"{spec.into}: {error}")
    if failed:
        first, why = next(iter(failed.items()))
        raise FixRequest(
            "TS1849",
            f"{len(failed)} of {len(specs)} sources could not be brought up to now: {', '.join(failed)}",
            why=f"{first}: {why}",
            fix="set that right and run it again: each resumes where it is",
        ) from why
