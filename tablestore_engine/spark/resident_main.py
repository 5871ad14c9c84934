"""The program of a resident process: runtime/resident, and the end of jobs in the JVM that it keeps.

INVARIANT  it starts no Spark and imports no pyspark: commands start JVMs, and give it their input.
"""

from __future__ import annotations

import sys
from contextlib import suppress
from typing import Any

from py4j.java_gateway import GatewayParameters, JavaGateway
from py4j.protocol import Py4JError

from tablestore_engine.runtime.resident.resident_process import main
from tablestore_engine.runtime.resident.session_place import KeptJvm

_ANSWER_SECONDS = 5.0


def cancel_jobs(kept: KeptJvm) -> None:
    """All that run in the JVM now; nothing where it does not answer."""
    how = GatewayParameters(port=kept.port, auth_token=kept.secret, read_timeout=_ANSWER_SECONDS)
    gateway: Any = JavaGateway(gateway_parameters=how)
    with suppress(Py4JError, OSError):
        gateway.jvm.org.apache.spark.SparkContext.getOrCreate().cancelAllJobs()
    gateway.close()


if __name__ == "__main__":
    main(sys.argv[1:], cancel_jobs)
