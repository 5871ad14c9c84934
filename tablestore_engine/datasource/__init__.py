"""Spark's format("tablestore"): streams and batches of one table, in the Python workers that Spark starts for it.

Path       Spark finds spark_source.py. Beside the driver, stream_reader.py gives the end of a batch: stream_walk.py
           follows the snapshots, admission.py limits it → the offset in Spark's checkpoint contains the batch's start
           (stream_reader.py) → slices.py divides it among tasks, in the columns of asked_columns.py.
Write      tasks leave rows in files (staged_write.py), spark_source.py commits a batch once.
"""
