"""dbt-tests-adapter over this adapter: one class per class of the suite; NOT_RUN.md lists the rest."""
