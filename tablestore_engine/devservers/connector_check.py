"""Whether waiting for a connector has sense: asked again and again while somebody waits.

INVARIANT  one answer that does not come is no end: a busy machine, or Connect at its work, lets a question wait.
"""

from __future__ import annotations

from pathlib import Path

from tablestore_engine.devservers.kafka_connect import find_connect
from tablestore_engine.errors import FixRequest, RetryError
from tablestore_engine.postgres.connect_rest import ConnectInfo, connector_status
from tablestore_engine.runtime.outside_world import Runtime

_SILENT_SECONDS = 30.0


class ConnectorCheck:
    """Of one wait. `silent_seconds`: how long it may leave questions open that it got."""

    def __init__(
        self, running: ConnectInfo, runtime: Runtime, silent_seconds: float = _SILENT_SECONDS
    ) -> None:
        self._running, self._runtime, self._silent_ms = running, runtime, int(silent_seconds * 1000)
        self._answered_ms = runtime.now_ms()

    def __call__(self) -> None:
        """Raises FixRequest TS1467 (it has failed), RetryError TS1467 (it ended, or is silent)."""
        status = connector_status(self._running)
        if status is None:
            if not self._is_there():
                raise self._not_running("its process has ended")
            if self._runtime.now_ms() - self._answered_ms > self._silent_ms:
                raise self._not_running(f"it has not answered for {self._silent_ms / 1000:.0f} s")
            return
        self._answered_ms = self._runtime.now_ms()
        if status.is_halted:
            raise FixRequest(
                "TS1467",
                f"the connector of {self._running.source.url} does not run",
                why=f"it is {status.connector}, its task {status.task}: {status.error}",
                fix=f"read {self._running.log}, then: tablestore connect stop {self._running.source.name}, and start "
                "it again. A value that cannot be converted (NaN in numeric; a large value that an update left as it "
                "was, in a table without replica identity full) comes again: correct it, then start with `--anew`",
            )

    def _is_there(self) -> bool:
        folder = Path(self._running.data_dir)
        return find_connect(self._running.source.name, folder, runtime=self._runtime) == self._running

    def _not_running(self, why: str) -> RetryError:
        return RetryError(
            "TS1467",
            f"the connector of {self._running.source.url} does not run",
            why=why,
            fix=f"read {self._running.log}, then: tablestore connect start {self._running.source.name}",
        )
