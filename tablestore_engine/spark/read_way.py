"""How a session reads the files of one warehouse: by links, by Spark's own reader on the store, or by Arrow.

links      a folder of this machine or of a shared disk: Spark lists symbolic links to the files (linked_files)
native     an object store whose Hadoop connector the session has: Spark's Parquet reader on `s3a://…`
           (remote_relations)
portable   any other store: Python workers read with the engine's own client and Arrow (arrow_relation)
CHANGE     which way Spark reads data files, and why
INVARIANT  one place decides, once for a session and a warehouse, and says why.
INVARIANT  a connector counts only after it answered for this very warehouse: it may be there and know no credentials.
"""

from __future__ import annotations

from dataclasses import dataclass

from pyspark.sql import SparkSession

from tablestore_engine.errors import FixRequest
from tablestore_engine.fileio.base import FileIO
from tablestore_engine.fileio.object_cache import uncached
from tablestore_engine.fileio.object_store import ObjectFileIO
from tablestore_engine.spark.hadoop_connector import HadoopPlaces, local_places, places_of, why_unusable
from tablestore_engine.spark.spark_settings import ReadWay

_ASKED = "`read_way` asks for it"


_MEANS = {
    ReadWay.LINKS: "by symbolic links to local files",
    ReadWay.NATIVE: "with its own Parquet reader",
    ReadWay.PORTABLE: "through the engine",
}


@dataclass(frozen=True)
class ChosenReads:
    """`reason`: of the choice, as part of a sentence. `places`: where Hadoop finds the files; None but for NATIVE."""

    way: ReadWay
    fileio: FileIO
    reason: str
    places: HadoopPlaces | None = None

    @property
    def sentence(self) -> str:
        """For people."""
        return f"Spark reads data files {_MEANS[self.way]} (read_way: {self.way.value}): {self.reason}"


def choose_reads(session: SparkSession, fileio: FileIO, asked: ReadWay = ReadWay.AUTO) -> ChosenReads:
    """The connector is asked at most once. Raises FixRequest TS1531 (the way that was asked for is not possible)."""
    store = uncached(fileio)
    if not isinstance(store, ObjectFileIO):
        if asked is ReadWay.AUTO:
            return ChosenReads(ReadWay.LINKS, fileio, "the warehouse is a folder")
        places = local_places() if asked is ReadWay.NATIVE else None
        return ChosenReads(asked, fileio, _ASKED, places)
    if asked is ReadWay.LINKS:
        raise _impossible(asked, store.root, "links to objects lead nowhere")
    if asked is ReadWay.PORTABLE:
        return ChosenReads(asked, fileio, _ASKED)
    places = places_of(store.address)
    problem = why_unusable(session, places)
    if problem is None:
        return ChosenReads(ReadWay.NATIVE, fileio, f"{places.connector} answers for {store.root}", places)
    if asked is ReadWay.NATIVE:
        raise _impossible(asked, store.root, problem)
    return ChosenReads(ReadWay.PORTABLE, fileio, problem)


def _impossible(asked: ReadWay, root: str, why: str) -> FixRequest:
    return FixRequest(
        "TS1531",
        f"Spark cannot read {root} the {asked.value} way",
        why=why,
        fix="set `read_way: auto` (the portable way needs no connector), or add the connector that "
        "`tablestore doctor` names to spark.jars",
    )
