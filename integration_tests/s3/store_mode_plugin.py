"""Loaded by each process of pytest before any test module: its file systems are on the S3 server."""

from __future__ import annotations

from integration_tests.s3.store_mode import switch_on

switch_on()
