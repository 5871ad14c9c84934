"""The classes that `make test` runs: of each area those that would notice most; `make test-conformance` runs all.

WHY        each materialization once, and what goes through most macros. Left out: what the adapter's suite shows by day
           (clones, keys and new columns of incremental models, threads, Python models, batches,
           snapshots that check columns), and the longest that prove least.
"""

from __future__ import annotations

from collections.abc import Mapping

SELECTED: Mapping[str, frozenset[str] | None] = {
    "test_page": None,
    "test_basic": frozenset(
        {
            "TestSimpleMaterializations",
            "TestSingularTests",
            "TestEmpty",
            "TestEphemeral",
            "TestIncremental",
            "TestGenericTests",
            "TestDocsGenerate",
            "TestDocsGenReferences",
        }
    ),
    "test_incremental": frozenset(),
    "test_aliases": frozenset(),
    "test_caching": frozenset({"TestCachingSelectedSchemaOnly"}),
    "test_catalog": None,
    "test_clone": frozenset(),
    "test_concurrency": frozenset(),
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
    "test_ephemeral": frozenset(),
    "test_functions": frozenset({"TestCanFindScalarFunctionRelation", "TestUDFs"}),
    "test_hooks": frozenset({"TestPrePostModelHooks", "TestPrePostRunHooks"}),
    "test_persist_docs": frozenset({"TestPersistDocs"}),
    "test_python_model": frozenset(),
    "test_query_comment": frozenset({"TestMacroArgsQueryComments"}),
    "test_relations": frozenset({"TestDropSchemaNamed"}),
    "test_sample_mode": frozenset(),
    "test_show": frozenset(),
    "test_simple_copy": frozenset(),
    "test_simple_seed": frozenset({"TestSeedSpecificFormats", "TestSimpleSeedColumnOverride"}),
    "test_simple_snapshot": frozenset({"TestSnapshotNewColumnWithDeletes"}),
    "test_store_test_failures": frozenset({"TestAsInteractions"}),
    "test_unit_testing": frozenset({"TestInvalidInput"}),
    "test_utils": frozenset({"TestDateDiff", "TestListagg", "TestValidateSqlMethod"}),
}


def is_selected(file: str, cls: str | None) -> bool:
    """Whether `make test` runs a class of a file."""
    names = SELECTED.get(file, frozenset())
    return names is None or cls in names
