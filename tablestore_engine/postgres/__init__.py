"""Change data capture from PostgreSQL: its catalog, publication and replication slot, and Debezium's connector."""
