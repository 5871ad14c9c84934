"""Bucket hashes computed by Paimon's own Java code (format.md#buckets), as data for every implementation here."""

# ruff: noqa: DTZ001 — values of TIMESTAMP have no zone
from __future__ import annotations

import datetime as dt
from decimal import Decimal
from typing import NamedTuple

import numpy as np


class BucketVector(NamedTuple):
    """One hash; values as format.binary_row takes them."""

    types: tuple[str, ...]
    row: tuple[object, ...]
    hash: int
    bucket_of_4: int
    bucket_of_7: int


def _v(types: str, value: object, hash_: int, b4: int, b7: int) -> BucketVector:
    return BucketVector((types,), (value,), hash_, b4, b7)


_AT = dt.datetime(2024, 1, 1, 12, 34, 56, 789000)
_AT_MICROS = dt.datetime(2024, 1, 1, 12, 34, 56, 789123)

BUCKET_VECTORS: tuple[BucketVector, ...] = (
    _v("INT", 0, -300363099, 3, 1),
    _v("INT", 1, 1465514398, 2, 5),
    _v("INT", -1, 1133687267, 3, 6),
    _v("INT", 42, 907821237, 1, 1),
    _v("INT", 100000, 1061084387, 3, 6),
    _v("INT", 2147483647, -1125657321, 1, 5),
    _v("INT", -2147483648, 916225219, 3, 0),
    _v("BIGINT", 0, -300363099, 3, 1),
    _v("BIGINT", 1, 1465514398, 2, 5),
    _v("BIGINT", -1, -821098432, 0, 0),
    _v("BIGINT", 1234567890123, -1873221036, 0, 1),
    _v("BIGINT", 9223372036854775807, -1566569095, 3, 0),
    _v("BIGINT", -9223372036854775808, 302122119, 3, 5),
    _v("TINYINT", -5, -866908712, 0, 5),
    _v("SMALLINT", -300, -887757019, 3, 2),
    _v("BOOLEAN", True, 1465514398, 2, 5),
    _v("FLOAT", 1.5, -173842779, 3, 5),
    _v("DOUBLE", -2.25, -413435051, 3, 1),
    _v("STRING", "", 302122119, 3, 5),
    _v("STRING", "a", 943281246, 2, 5),
    _v("STRING", "abc", -101922419, 3, 4),
    _v("STRING", "1234567", 199144172, 0, 3),
    _v("STRING", "12345678", -391021801, 1, 2),
    _v("STRING", "hello paimon", 168916036, 0, 2),
    _v("STRING", "2024-01-01", 306517490, 2, 6),
    _v("STRING", "é", -1531579217, 1, 0),
    _v("STRING", "日本語", -476998221, 1, 0),
    _v("STRING", "日本", -687604583, 3, 1),
    _v("STRING", "0123456789abcdef", -1187815606, 2, 5),
    _v("STRING", "0123456789abcdefg", 1053126342, 2, 2),
    _v("DECIMAL(10,2)", Decimal("0.00"), -300363099, 3, 1),
    _v("DECIMAL(10,2)", Decimal("12.34"), -1096042293, 1, 3),
    _v("DECIMAL(10,2)", Decimal("-12.34"), 808378434, 2, 3),
    _v("DECIMAL(10,2)", Decimal("99999999.99"), 515728252, 0, 4),
    _v("DECIMAL(18,0)", Decimal(123456789012345678), -663849041, 1, 2),
    _v("DECIMAL(20,2)", Decimal("12.34"), -531788649, 1, 0),
    _v("DECIMAL(20,2)", Decimal("-1.28"), 1196242097, 1, 1),
    _v("DECIMAL(20,2)", Decimal("-1.29"), -104809469, 1, 2),
    _v("DECIMAL(20,2)", Decimal("1.27"), 1891628258, 2, 2),
    _v("DECIMAL(20,2)", Decimal("1.28"), -795104203, 3, 5),
    _v("DECIMAL(38,2)", Decimal("-0.01"), 907730780, 0, 5),
    _v("DECIMAL(38,2)", Decimal("0.00"), 728486185, 1, 0),
    _v("DECIMAL(38,2)", Decimal("12345678901234567890.12"), 881144972, 0, 1),
    _v("DATE", dt.date(2024, 1, 1), -1439008885, 1, 6),
    _v("DATE", dt.date(1969, 12, 31), 1133687267, 3, 6),
    _v("TIMESTAMP(3)", dt.datetime(2024, 1, 1), -603952476, 0, 1),
    _v("TIMESTAMP(3)", _AT, -1127790568, 0, 2),
    _v("TIMESTAMP(6)", _AT, 649420526, 2, 6),
    _v("TIMESTAMP(6)", _AT_MICROS, -408368702, 2, 0),
    _v("TIMESTAMP(6)", dt.datetime(1969, 12, 31, 23, 59, 59, 999999), 1236894319, 3, 3),
    _v("TIMESTAMP(9)", np.datetime64("2024-01-01T12:34:56.789123456", "ns"), -2066397192, 0, 6),
    _v("BYTES", b"\x00\xff\x10", 2082148600, 0, 0),
    BucketVector(("BIGINT", "STRING"), (1, "a"), -948407462, 2, 2),
    BucketVector(("BIGINT", "STRING"), (7, "longer-than-seven"), 202965811, 3, 6),
    BucketVector(("STRING", "STRING"), ("longer-one", "longer-two"), -891454717, 1, 6),
    BucketVector(
        ("INT", "DATE", "DECIMAL(10,2)"), (3, dt.date(2024, 1, 1), Decimal("12.34")), 1592813053, 1, 6
    ),
    BucketVector(("INT", "STRING"), (None, "x"), 398608515, 3, 4),
    BucketVector(("BIGINT", "TIMESTAMP(6)", "STRING"), (1, _AT_MICROS, "abcdefgh"), 1994098817, 1, 4),
    BucketVector((), (), -1670924195, 3, 3),
)

ROW_BYTES: tuple[tuple[tuple[str, ...], tuple[object, ...], str], ...] = (
    (("INT",), (-1,), "0000000000000000 ffffffff00000000"),
    (("STRING",), ("1234567",), "0000000000000000 3132333435363787"),
    (("STRING",), ("12345678",), "0000000000000000 0800000010000000 3132333435363738"),
    (("DECIMAL(10,2)",), (Decimal("-12.34"),), "0000000000000000 2efbffffffffffff"),
    (
        ("DECIMAL(20,2)",),
        (Decimal("12.34"),),
        "0000000000000000 0200000010000000 04d2000000000000 0000000000000000",
    ),
    (
        ("DECIMAL(20,2)",),
        (Decimal("-1.28"),),
        "0000000000000000 0100000010000000 8000000000000000 0000000000000000",
    ),
    (("TIMESTAMP(3)",), (_AT,), "0000000000000000 952005c58c010000"),
    (("TIMESTAMP(6)",), (_AT_MICROS,), "0000000000000000 78e0010010000000 952005c58c010000"),
    (
        ("BIGINT", "STRING"),
        (7, "longer-than-seven"),
        "0000000000000000 0700000000000000 1100000018000000 6c6f6e6765722d74 68616e2d73657665 6e00000000000000",
    ),
    (("INT", "STRING"), (None, "x"), "0001000000000000 0000000000000000 7800000000000081"),
)
