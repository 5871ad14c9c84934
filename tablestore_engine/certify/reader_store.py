"""How readers of others reach the object store of a warehouse: settings alone, credentials stay in the environment."""

from __future__ import annotations

from collections.abc import Mapping

from tablestore_engine.fileio.store_address import is_object_store, parse_address


def reader_store(address: str, environ: Mapping[str, str]) -> Mapping[str, object] | None:
    """endpoint, region, path_style and anonymous of an S3 store; None for a folder, and for stores of other kinds."""
    if not is_object_store(address):
        return None
    found = parse_address(address)
    if found.scheme != "s3":
        return None
    return {
        "endpoint": found.endpoint(environ),
        "region": found.region(environ),
        "path_style": found.settings.path_style,
        "anonymous": found.settings.anonymous,
    }
