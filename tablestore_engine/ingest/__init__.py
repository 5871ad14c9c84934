"""Change messages of other systems → keyed tables, exactly once.

Path       api/engine.py opens the source (log/message_source.py is the port) → ingest_run.py continues at the table's
           source offset, batch by batch → message_decoder.py makes columns of messages: many at once
           (debezium_batch_decode.py) or one by one (debezium.py, canal_maxwell_ogg.py) → target_columns.py says which
           columns the table needs → table_sink.py commits dead letters, then rows and offset in one snapshot.
"""
