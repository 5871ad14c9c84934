"""TPC-DI-shaped: daily files of a broker's systems, SCD2 dimensions with effective dates, facts, messages, audits."""
