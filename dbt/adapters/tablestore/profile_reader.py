"""The target of a project for the command line, as dbt reads it: its options, variables, files and rendering.

It is the entry point of the group `tablestore.profile`; the engine never imports dbt.

CHANGE     how a command reads a dbt profile
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from click.exceptions import ClickException
from dbt.cli.flags import Flags, args_to_context
from dbt.config.runtime import load_profile
from dbt.flags import set_flags
from dbt_common.clients.system import get_env
from dbt_common.context import set_invocation_context
from dbt_common.exceptions import DbtBaseException

from dbt.adapters.tablestore.credentials import EngineSettings, TablestoreCredentials, describe_warehouse
from tablestore_engine.api import FixRequest


def read_target(words: Sequence[str]) -> EngineSettings | None:
    """`words`: options of dbt, as --target dev. None: the target is another adapter's. Raises FixRequest TS1945.

    `log` is what the profile says: the environment is the caller's.
    """
    try:
        flags: Any = Flags(args_to_context(["debug", *words]))
        set_flags(flags)  # type: ignore[no-untyped-call]  # dbt's
        set_invocation_context(get_env())
        profile = load_profile(flags.PROJECT_DIR, flags.VARS, flags.PROFILE, flags.TARGET)
        credentials = profile.credentials
        if not isinstance(credentials, TablestoreCredentials):
            return None
        return describe_warehouse(credentials, flags.PROJECT_DIR, environ={})
    except (DbtBaseException, ClickException) as error:
        raise FixRequest(
            "TS1945",
            "the profile of the dbt project cannot be read",
            why=" ".join(str(getattr(error, "message", error)).split()),
            fix="`dbt debug` shows the same; correct the profile, or name the brokers with --bootstrap",
        ) from error
