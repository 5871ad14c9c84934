"""Writers that are killed over an S3 server that is killed too, behind a proxy that loses answers.

Steps      1 writer_kills in a process of its own, whose files are objects (store_mode)  2 meanwhile the server dies and
           comes back; one request of fifty is dropped, refused or answered with an error, before or after it is done
INVARIANT  the judges of writer_kills decide: every acknowledged commit is there once, each snapshot shows its command,
           and Paimon's Java and Rust readers, who read the objects as files, agree.
"""

from __future__ import annotations

import re
import subprocess

from integration_tests.s3.store_mode import store_world

_FAULTS, _KILL_SECONDS = 0.02, 12.0
_COUNTS = re.compile(r"^kills: (\d[\d,]*) kills, (\d[\d,]*) acknowledged, (\d[\d,]*) replayed$", re.MULTILINE)


def kill_over_store(seed: int, count: int) -> dict[str, int]:
    """At least `count` killed writers. Raises AssertionError with the output at the first fault."""
    with store_world(seed, _FAULTS, _KILL_SECONDS) as world:
        words = ("kills", "--seed", str(seed), "--count", str(count))
        done = world.run("integration_tests.soak.run", *words, output=subprocess.PIPE)
    found = _COUNTS.search(done.stdout)
    assert done.returncode == 0, f"seed {seed}: {done.stdout}"
    assert found is not None, f"seed {seed}: {done.stdout}"
    kills, acknowledged, replayed = (int(number.replace(",", "")) for number in found.groups())
    return {
        "writers killed": kills,
        "server kills": world.server_kills,
        "faults of requests": sum(world.faults.values()),
        "requests": world.requests,
        "acknowledged": acknowledged,
        "replayed": replayed,
    }
