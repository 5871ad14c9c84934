"""The client of the tests, with one attempt for each request."""

from __future__ import annotations

from obstore.store import S3Store

from tablestore_engine.devservers.s3_requests import REGION
from tablestore_engine.devservers.s3_server import S3ServerInfo


def open_store(info: S3ServerInfo, bucket: str, *, url: str | None = None, timeout: str = "60s") -> S3Store:
    """A bucket of the server, on demand by way of the proxy at `url`."""
    return S3Store(
        bucket,
        endpoint=url or info.url,
        region=REGION,
        access_key_id=info.access_key,
        secret_access_key=info.secret_key,
        virtual_hosted_style_request=False,
        client_options={"allow_http": True, "timeout": timeout},
        retry_config={"max_retries": 0},
    )
