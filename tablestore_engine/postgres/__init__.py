"""Change data capture from PostgreSQL: its catalog, publication and replication slot, and Debezium's connector.

Path       connector_bootstrap.py decides between a first load and a restart, from connector_state.py, the server
           (postgres_session.py, catalog_tables.py) and the topics → devservers/kafka_connect.py runs Debezium with the
           properties of database_source.py → each sync publishes new tables (publication_tables.py) and finds values
           that replication did not send (unsent_values.py) → api/database_sync.py waits for Connect
           (replication_progress.py) and ingests each topic. snapshot_connector.py reads single tables again.
"""
