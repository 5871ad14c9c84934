"""dbt-tests-adapter over this adapter, class by class; docs/conformance.md says what became of each."""
