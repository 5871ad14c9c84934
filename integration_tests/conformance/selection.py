"""The classes that `make test` runs: of each area those that would notice most, five minutes in all.

WHY        basic and incremental whole, because everything rests on them; elsewhere what goes through most macros.
           Left out: the three longest that prove least of it (simple copy, stored failures, unit tests of types).
"""

from __future__ import annotations

from collections.abc import Mapping

SELECTED: Mapping[str, frozenset[str] | None] = {
    "test_page": None,
    "test_basic": None,
    "test_incremental": None,
    "test_aliases": frozenset({"TestAliases"}),
    "test_caching": frozenset({"TestCachingSelectedSchemaOnly"}),
    "test_catalog": None,
    "test_clone": frozenset({"TestClonePossible"}),
    "test_concurrency": None,
    "test_constraints": frozenset(
        {
            "TestConstraintQuotedColumn",
            "TestIncrementalConstraintsColumnsEqual",
            "TestIncrementalConstraintsRollback",
            "TestIncrementalContractSqlHeader",
            "TestModelConstraintsRuntimeEnforcement",
        }
    ),
    "test_empty": frozenset({"TestEmpty"}),
    "test_ephemeral": frozenset({"TestEphemeralMulti"}),
    "test_functions": frozenset({"TestCanFindScalarFunctionRelation", "TestUDFs"}),
    "test_hooks": frozenset(
        {"TestPrePostModelHooks", "TestPrePostRunHooks", "TestPrePostModelHooksOnSnapshots"}
    ),
    "test_persist_docs": frozenset({"TestPersistDocs"}),
    "test_python_model": frozenset({"TestPythonIncremental", "TestPySpark"}),
    "test_query_comment": frozenset({"TestMacroArgsQueryComments"}),
    "test_relations": None,
    "test_sample_mode": None,
    "test_show": frozenset({"TestShowLimit"}),
    "test_simple_copy": frozenset(),
    "test_simple_seed": frozenset(
        {"TestBasicSeedTests", "TestSeedSpecificFormats", "TestSimpleSeedColumnOverride"}
    ),
    "test_simple_snapshot": frozenset(
        {"TestSnapshotCheck", "TestSnapshotMultiUniqueKey", "TestSnapshotNewColumnWithDeletes"}
    ),
    "test_store_test_failures": frozenset({"TestAsInteractions"}),
    "test_unit_testing": frozenset({"TestInvalidInput"}),
    "test_utils": frozenset({"TestArrayConcat", "TestDateDiff", "TestListagg", "TestValidateSqlMethod"}),
}


def is_selected(file: str, cls: str | None) -> bool:
    """Whether `make test` runs a class of a file."""
    names = SELECTED.get(file, frozenset())
    return names is None or cls in names
