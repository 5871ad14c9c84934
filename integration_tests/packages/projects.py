"""Which foreign projects are tried, and what each needs.

INVARIANT  nothing of a checkout is changed but where its packages come from: `packages.yml` names folders, as there may
           be no network. What else a project needs is in `settings` (vars, environment, a selection, a dispatch) and
           stands on the page.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any


@dataclass(frozen=True)
class ForeignProject:
    """A dbt project in a checkout.

    checkout    folder of the repository; `folder` of the dbt project in it; `packages`: other checkouts that it needs
    settings    merged into dbt_project.yml; `adapted` says why they are needed
    impossible  a part of a node's id → why that node cannot pass
    """

    name: str
    checkout: str
    folder: str
    commands: tuple[str, ...]
    packages: tuple[str, ...] = ()
    environment: Mapping[str, str] = field(default_factory=dict)
    settings: Mapping[str, Any] = field(default_factory=dict)
    adapted: str = ""
    impossible: Mapping[str, str] = field(default_factory=dict)

    def reason(self, node: str) -> str | None:
        """Why a node fails; None: nobody knows."""
        return next((why for part, why in self.impossible.items() if part in node), None)


def _ours_first(package: str, project: str) -> Mapping[str, Any]:
    """Macros of the adapter before those of a package."""
    return {"dispatch": [{"macro_namespace": package, "search_order": [project, "dbt", package]}]}


_EVALUATOR = {
    "dispatch": [
        {"macro_namespace": "dbt", "search_order": ["dbt_project_evaluator", "dbt"]},
        {"macro_namespace": "dbt_project_evaluator", "search_order": ["dbt", "dbt_project_evaluator"]},
    ]
}

PROJECTS = (
    ForeignProject("jaffle_shop (classic)", "jaffle_shop", ".", ("build", "docs generate")),
    ForeignProject(
        "jaffle-shop",
        "jaffle-shop",
        ".",
        ("seed --vars {load_source_data:\\ true}", "build", "docs generate"),
        packages=("dbt-utils", "dbt-date", "dbt-audit-helper"),
    ),
    ForeignProject(
        "dbt-utils",
        "dbt-utils",
        "integration_tests",
        ("seed", "run", "test"),
        impossible={
            "test_groupby": "Spark refuses `select *` with a group by of positions",
            "equality_floats_a": "the seed's column type `float` has 32 bits in Spark, in which both values are equal",
        },
    ),
    ForeignProject(
        "dbt-expectations",
        "dbt-expectations",
        "integration_tests",
        ("build",),
        packages=("dbt-date",),
        settings=_ours_first("dbt_expectations", "dbt_expectations_integration_tests"),
        adapted="its macro for Spark leaves out `flags` and `is_raw`",
    ),
    ForeignProject("dbt-date", "dbt-date", "integration_tests", ("build",)),
    ForeignProject(
        "dbt_artifacts",
        "dbt_artifacts",
        "integration_test_project",
        ("build",),
        environment={
            "DBT_ENV_CUSTOM_ENV_FAVOURITE_DBT_PACKAGE": "dbt_artifacts",
            "TEST_ENV_VAR_NUMBER": "5",
            "TEST_ENV_VAR_EMPTY": "",
            "TEST_ENV_VAR_WITH_QUOTE": "Triple H's",
        },
        impossible={"microbatch": "its partition_by is BigQuery's map, which is refused (TS1811)"},
    ),
    ForeignProject(
        "codegen",
        "dbt-codegen",
        "integration_tests",
        ("run-operation create_source_table", "seed", "run", "test"),
        packages=("dbt-utils",),
        impossible={
            "generate_model": "the test expects Postgres's names of types (integer, text)",
            "generate_source_all_args": "the test expects Postgres's names of types (integer, text)",
        },
    ),
    ForeignProject(
        "audit_helper",
        "dbt-audit-helper",
        "integration_tests",
        ("build",),
        packages=("dbt-utils",),
        settings=_ours_first("audit_helper", "audit_helper_integration_tests"),
        adapted="it has no comparison of whole queries for Spark, and counts pairs over a window, which Spark cannot",
        impossible={
            "struct": "the package's own test macro stops at adapters that it does not know",
        },
    ),
    ForeignProject(
        "dbt_project_evaluator",
        "dbt-project-evaluator",
        "integration_tests",
        ("build",),
        packages=("dbt-utils", "dbt-project-evaluator/integration_tests/exclude_package"),
        settings=_EVALUATOR,
        adapted="its macro for Spark joins a view nine times with itself; Spark has recursive queries now",
        impossible={
            "_coverage": "the seed's column type `float` has 32 bits in Spark, which changes 38.89",
        },
    ),
    ForeignProject(
        "dbt_project_evaluator (2)",
        "dbt-project-evaluator",
        "integration_tests_2",
        ("seed", "run"),
        packages=("dbt-utils",),
        settings=_EVALUATOR,
        adapted="its macro for Spark joins a view nine times with itself; Spark has recursive queries now",
    ),
    ForeignProject(
        "elementary",
        "dbt-data-reliability",
        ".",
        ("run", "test"),
        packages=("dbt-utils",),
    ),
    ForeignProject(
        "dbt_github (Fivetran)",
        "dbt_github",
        "integration_tests",
        ("seed", "run", "test"),
        packages=("dbt_fivetran_utils", "spark-utils", "dbt-utils"),
    ),
    ForeignProject(
        "dbt-profiler",
        "dbt-profiler",
        "integration_tests",
        ("seed", "run", "test"),
        packages=("dbt-utils", "dbt-expectations", "dbt-date"),
        settings=_ours_first("dbt_profiler", "dbt_profiler_integration_tests"),
        adapted="its words for Spark have the name of Databricks",
    ),
    ForeignProject(
        "attribution-playbook",
        "attribution-playbook",
        ".",
        ("build",),
        impossible={
            "attribution_touches": "Snowflake's SQL: Spark has `dateadd(day, …)`, not `dateadd(days, …)` (TS1505)"
        },
    ),
    ForeignProject("dbt-unittest", "dbt-unittest", "integration_tests", ("run-operation test_macros",)),
)
