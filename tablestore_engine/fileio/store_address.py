"""Addresses of warehouses on object stores: which store, which bucket, which prefix, and how the store is reached.

    s3://BUCKET/PREFIX?endpoint=http://127.0.0.1:7070&region=us-east-1     also s3a://; any S3-compatible store
    gs://BUCKET/PREFIX                                                     Google Cloud Storage
    az://CONTAINER/PREFIX?account=NAME                                     Azure; also abfss://CONTAINER@ACCOUNT.dfs…/PREFIX

INVARIANT  an address holds no credentials, so it may stand in a profile, a log, a task and a table's description. They
           come from the environment, instance or workload identity; a key that looks like one is refused.
INVARIANT  one warehouse has one text: `text` of two addresses of the same place and settings is equal.
"""

from __future__ import annotations

import difflib
import re
from collections.abc import Mapping
from dataclasses import dataclass, fields
from types import MappingProxyType
from urllib.parse import parse_qsl, quote, urlsplit

from tablestore_engine.errors import FixRequest

_SCHEMES: Mapping[str, str] = MappingProxyType(
    {"s3": "s3", "s3a": "s3", "gs": "gs", "gcs": "gs", "az": "az", "abfs": "az", "abfss": "az"}
)
_OF_STORE: Mapping[str, tuple[str, ...]] = MappingProxyType(
    {
        "s3": ("endpoint", "region", "path_style", "anonymous", "timeout_s", "cache_mb"),
        "gs": ("endpoint", "anonymous", "timeout_s", "cache_mb"),
        "az": ("endpoint", "account", "anonymous", "timeout_s", "cache_mb"),
    }
)
_BUCKET = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{1,221}[A-Za-z0-9]")
_SECRET = re.compile(r"key|secret|token|password|passwd|sas|credential|signature", re.IGNORECASE)
_ENDPOINT = re.compile(r"https?://[^/?#@\s]+", re.IGNORECASE)
_ENVIRONMENT: Mapping[str, tuple[str, ...]] = MappingProxyType(
    {
        "s3": ("AWS_ENDPOINT_URL_S3", "AWS_ENDPOINT_URL", "AWS_ENDPOINT"),
        "gs": ("GOOGLE_BASE_URL",),
        "az": ("AZURE_STORAGE_ENDPOINT", "AZURE_ENDPOINT", "AZURE_STORAGE_ACCOUNT_NAME"),
    }
)
_REGIONS, _REGION = ("AWS_REGION", "AWS_DEFAULT_REGION"), "us-east-1"
_NUMBERS: Mapping[str, tuple[int, int, str]] = MappingProxyType(
    {"timeout_s": (1, 3600, "seconds"), "cache_mb": (0, 1_000_000, "MiB")}
)
_BOOLEANS = {"true": True, "false": False}


@dataclass(frozen=True)
class StoreSettings:
    """How a store is reached; every value is text that may be shown. None: what the environment or the cloud says.

    `endpoint` URL of an S3-compatible store, `region` its region, `path_style` the bucket stands in the path and not in
    the host name, `anonymous` requests are not signed, `account` of Azure, `timeout_s` seconds of one request.
    """

    endpoint: str | None = None
    region: str | None = None
    path_style: bool = True
    anonymous: bool = False
    account: str | None = None
    timeout_s: int = 30
    cache_mb: int = 256


@dataclass(frozen=True)
class StoreAddress:
    """`scheme` s3, gs or az; `bucket` or container; `prefix` of all keys, without slashes at its ends."""

    scheme: str
    bucket: str
    prefix: str
    settings: StoreSettings

    @property
    def root(self) -> str:
        """The warehouse as a path of the FileIO, without settings."""
        return f"{self.scheme}://{self.bucket}" + (f"/{self.prefix}" if self.prefix else "")

    @property
    def text(self) -> str:
        """The whole address, by which another process opens the same warehouse."""
        plain = StoreSettings()
        given = [
            f"{one.name}={quote(_shown(getattr(self.settings, one.name)), safe=':/')}"
            for one in fields(StoreSettings)
            if getattr(self.settings, one.name) != getattr(plain, one.name)
        ]
        return self.root + (f"?{'&'.join(given)}" if given else "")

    def endpoint(self, environ: Mapping[str, str]) -> str | None:
        """The URL of the address, else of the environment; None for the cloud's own."""
        found = (environ.get(name) for name in _ENVIRONMENT[self.scheme])
        return self.settings.endpoint or next(filter(None, found), None)

    def region(self, environ: Mapping[str, str]) -> str | None:
        """Of an S3 store: that of the address, else of the environment. None for the cloud's own; an endpoint without
        one gets what the engine's client signs for.
        """
        found = (environ.get(name) for name in _REGIONS)
        given = self.settings.region or next(filter(None, found), None)
        return given or (None if self.endpoint(environ) is None else _REGION)

    def store_name(self, environ: Mapping[str, str]) -> str:
        """Endpoint, account and bucket, with what the environment says where the address does not."""
        settings = self.settings
        given = settings.endpoint or " ".join(environ.get(name, "") for name in _ENVIRONMENT[self.scheme])
        return f"{self.scheme} {given} {settings.account or ''} {self.bucket}"


def is_object_store(address: str) -> bool:
    return address.partition(":")[0].lower() in _SCHEMES and "://" in address


def parse_address(address: str) -> StoreAddress:
    """Raises FixRequest TS1210 (place), TS1211 (settings)."""
    head, _, query = address.partition("?")
    parts = urlsplit(head.replace("#", "%23"))
    scheme = _SCHEMES[parts.scheme.lower()]
    bucket, account = parts.netloc, None
    if scheme == "az" and "@" in bucket:
        bucket, _, host = bucket.partition("@")
        account = host.partition(".")[0]
    elif "@" in bucket:
        raise _misplaced(address, "an address must not hold credentials")
    if not _BUCKET.fullmatch(bucket):
        raise _misplaced(address, f"{bucket!r} is not a bucket name")
    prefix = head[len(parts.scheme) + 3 + len(parts.netloc) :].strip("/")
    if any(part in ("", ".", "..") for part in prefix.split("/") if prefix) or "\0" in prefix:
        raise _misplaced(address, "a prefix has no empty part, `.`, `..` or NUL")
    values = dict(parse_qsl(query, keep_blank_values=True))
    if account is not None:
        values.setdefault("account", account)
    return StoreAddress(scheme, bucket, prefix, _settings(scheme, values))


def with_settings(address: str, values: Mapping[str, object]) -> str:
    """The address with more settings, those of `storage:` in a profile. Raises FixRequest TS1211 for a setting that
    the address has already with another value, and for an unknown one.
    """
    if not values:
        return address
    head, _, query = address.partition("?")
    given = dict(parse_qsl(query, keep_blank_values=True))
    more = {key: _shown(value) for key, value in values.items()}
    for key in sorted(given.keys() & more.keys()):
        if given[key] != more[key]:
            raise unusable_setting(key, f"the address says {given[key]!r}, the profile says {more[key]!r}")
    pairs = "&".join(f"{key}={quote(value, safe=':/')}" for key, value in {**given, **more}.items())
    return parse_address(f"{head}?{pairs}").text


def _settings(scheme: str, values: Mapping[str, str]) -> StoreSettings:
    """Each store takes what has an effect on it."""
    kinds = {one.name: str(one.type) for one in fields(StoreSettings)}
    found: dict[str, str | bool | int] = {}
    for key, value in values.items():
        if key not in kinds:
            raise _unknown(key, list(_OF_STORE[scheme]))
        if key not in _OF_STORE[scheme]:
            raise unusable_setting(
                key, f"it means nothing to {scheme}://, which takes {', '.join(_OF_STORE[scheme])}"
            )
        found[key] = _value(key, kinds[key], value)
    return StoreSettings(**found)  # type: ignore[arg-type]  # each value has the type of its field


def _value(key: str, kind: str, value: str) -> str | bool | int:
    if kind == "bool":
        if value.lower() not in _BOOLEANS:
            raise unusable_setting(key, f"expected true or false, got {value!r}")
        return _BOOLEANS[value.lower()]
    if kind == "int":
        least, most, unit = _NUMBERS[key]
        if not value.isdecimal() or not least <= int(value) <= most:
            raise unusable_setting(key, f"expected {unit} from {least} to {most}, got {value!r}")
        return int(value)
    if not value:
        raise unusable_setting(key, "it is empty")
    if key == "endpoint" and not _ENDPOINT.match(value):
        raise unusable_setting(key, f"expected http://HOST or https://HOST, got {value!r}")
    return value


def _shown(value: object) -> str:
    return str(value).lower() if isinstance(value, bool) else str(value)


def _misplaced(address: str, why: str) -> FixRequest:
    shown = re.sub(r"//[^/]*@", "//***@", address.partition("?")[0])
    return FixRequest(
        "TS1210",
        f"a warehouse cannot lie at {shown}",
        why=why,
        fix="write s3://BUCKET/PREFIX, gs://BUCKET/PREFIX or az://CONTAINER/PREFIX, without credentials",
    )


def _unknown(key: str, known: list[str]) -> FixRequest:
    if _SECRET.search(key):
        return FixRequest(
            "TS1211",
            f"storage setting {key!r} is not allowed in an address or a profile",
            why="it looks like a credential, and addresses are logged and stored",
            fix="set it in the environment (AWS_ACCESS_KEY_ID, …), or use the identity of the machine",
        )
    near = difflib.get_close_matches(key, known, n=1, cutoff=0.0)[0]
    return unusable_setting(key, f"there is no such setting; the nearest is {near!r}")


def unusable_setting(key: str, why: str) -> FixRequest:
    """TS1211."""
    return FixRequest(
        "TS1211",
        f"storage setting {key!r} cannot be used",
        why=why,
        fix="correct the address of the warehouse or `storage:` in the profile",
    )
