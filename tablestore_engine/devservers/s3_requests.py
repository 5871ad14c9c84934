"""Requests to the development S3 server that need no client library: signed by AWS Signature Version 4.

Scope      requests for buckets: a list (GET /), a new one (PUT /name), a setting (PUT /name?policy=). Objects are the
           business of a client library.
Steps      1 canonical request  2 text to sign: its hash, the time and the scope  3 four chained HMACs give the key
"""

from __future__ import annotations

import hashlib
import hmac
import http.client
from dataclasses import dataclass, field
from datetime import UTC, datetime
from urllib.parse import quote

REGION = "us-east-1"
_TIMEOUT_SECONDS = 10.0
_SIGNED = "host;x-amz-content-sha256;x-amz-date"


@dataclass(frozen=True)
class S3Keys:
    access_key: str
    secret_key: str = field(repr=False)


def send_signed(
    method: str,
    address: str,
    path: str,
    keys: S3Keys,
    now_ms: int,
    *,
    query: str = "",
    body: bytes = b"",
    region: str = REGION,
) -> tuple[int, str]:
    """Status and body of an answer; `address` is host:port, `query` encoded. Raises OSError, HTTPException."""
    headers = sign(method, address, path, keys, now_ms, query=query, body=body, region=region)
    connection = http.client.HTTPConnection(address, timeout=_TIMEOUT_SECONDS)
    try:
        target = quote(path) + (f"?{query}" if query else "")
        connection.request(method, target, body=body or None, headers=headers)
        answer = connection.getresponse()
        return answer.status, answer.read().decode("utf-8", "replace")
    finally:
        connection.close()


def sign(
    method: str,
    address: str,
    path: str,
    keys: S3Keys,
    now_ms: int,
    *,
    query: str = "",
    body: bytes = b"",
    region: str = REGION,
) -> dict[str, str]:
    when = datetime.fromtimestamp(now_ms / 1000, UTC).strftime("%Y%m%dT%H%M%SZ")
    content = hashlib.sha256(body).hexdigest()
    headers = f"host:{address}\nx-amz-content-sha256:{content}\nx-amz-date:{when}\n"
    canonical = "\n".join((method, quote(path), query, headers, _SIGNED, content))
    scope = f"{when[:8]}/{region}/s3/aws4_request"
    digest = hashlib.sha256(canonical.encode()).hexdigest()
    key = f"AWS4{keys.secret_key}".encode()
    for part in scope.split("/"):
        key = hmac.digest(key, part.encode(), "sha256")
    signature = hmac.digest(key, f"AWS4-HMAC-SHA256\n{when}\n{scope}\n{digest}".encode(), "sha256").hex()
    return {
        "Host": address,
        "x-amz-date": when,
        "x-amz-content-sha256": content,
        "Authorization": f"AWS4-HMAC-SHA256 Credential={keys.access_key}/{scope}, SignedHeaders={_SIGNED}, "
        f"Signature={signature}",
    }
