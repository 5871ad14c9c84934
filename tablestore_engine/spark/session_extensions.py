"""Functions of Spark's ML library, which a session of ours gets when a program asks for it, not when it starts.

CHANGE     the extensions of a Spark session
WHY        Spark lets every provider on its class path extend a new session. Its own distribution has one, whose three
           internal functions need Scala's reflection: a second of each start. SQL cannot name these functions; code
           can, by pyspark.ml.functions.
INVARIANT  what is not proven loads at the start, as Spark does it: a provider that is not Spark's own, jars from
           elsewhere, another Spark than the installed pyspark, a cluster.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pyspark
from pyspark.sql import SparkSession

LOADS_PROVIDERS = "spark.sql.extensions.test.loadFromCp"
ML_FUNCTIONS = "org.apache.spark.sql.ml.InternalFunctionRegistration"
# Each of them can put jars on the class path that nobody has looked into.
_MORE_JARS = ("spark.jars", "spark.driver.extraClassPath", "spark.driver.userClassPathFirst", "spark.plugins")
_ENVIRONMENT = ("SPARK_HOME", "SPARK_CONF_DIR", "SPARK_DIST_CLASSPATH", "PYSPARK_SUBMIT_ARGS")


def may_wait(
    providers: frozenset[str] | None, conf: Mapping[str, str], environ: Mapping[str, str] = os.environ
) -> bool:
    """Whether a session starts without providers. `providers`: those of Spark's jars, None where nobody has looked."""
    if providers != frozenset({ML_FUNCTIONS}) or LOADS_PROVIDERS in conf:
        return False
    if any(key.startswith(_MORE_JARS) for key in conf) or any(name in environ for name in _ENVIRONMENT):
        return False
    return not (Path(pyspark.__file__).parent / "conf").exists()


def give_ml_functions(session: SparkSession) -> None:
    """What the start of the session has left out; without effect where it has not, or after the first time."""
    if str(session.conf.get(LOADS_PROVIDERS, "true")) == "false":
        jvm: Any = session._jvm
        registration = jvm.org.apache.spark.sql.ml.InternalFunctionRegistration()
        registration.apply(jvm.org.apache.spark.sql.SparkSessionExtensions())
