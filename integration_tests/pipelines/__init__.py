"""dbt projects of `changed_keys` models over generated feeds, each model against its full query after each batch.

tpch    the 22 queries of TPC-H as models, over rows of a generator of ours (TPC-H-shaped)
tpcdi   a warehouse of securities after the description of TPC-DI: SCD2 dimensions, facts, audits (TPC-DI-shaped)
WHY     the queries and the schemas were written by others, so nobody can have chosen them to suit this engine. The
        rows are of generators of our own: figures compare runs with one another, and are no results of a TPC benchmark.
"""
