"""dbt-tablestore's engine: LSM tables in the Apache Paimon format, with Kafka as their log system.

The layers, top to bottom (a line imports only lines below it; `.importlinter` checks it):

    testing | cli      the shipped test kit; the command line
    spi                what the dbt adapter, the command line and the demo use besides api
    api                what Python users import: Engine and Table handles
    warehouse          what is done to the tables of one warehouse: statements, writes, publishing, staging
    spark              many machines: the only place that calls pyspark
    catalog            names -> tables, views, schema changes
    store | log        one table's files: scan, write, commit | Kafka: outbox, publish, read back
    lsm                versions of a row -> one row; choosing compactions. No files, no Spark, no Kafka
    format | fileio    bytes <-> objects (opens nothing) | the file-system port
    runtime | options | sql  clock, ids, crash points, Java | the one table of options | SQL text understood
    errors             every exception, grouped by what the caller must do
"""
