"""Warehouses on an object store: the development S3 server, and a proxy in front of it that injects faults."""
