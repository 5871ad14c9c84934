"""Small tables that hardly ever change: calendar, times of a day, industries, statuses, tax rates, types of trades."""

from __future__ import annotations

import datetime as dt
from decimal import Decimal

import pyarrow as pa

from integration_tests.pipelines.tpcdi.schemas import rows_of_tuples

FIRST_DAY, LAST_LOADED, LAST_DAY = dt.date(2015, 1, 1), dt.date(2017, 7, 7), dt.date(2019, 12, 31)
INDUSTRIES = tuple(f"{a}{b}" for a in "AEHMR" for b in "BLT")
STATUSES = (
    *(("ACTV", "ACTIVE"), ("CMPT", "Completed"), ("CNCL", "Canceled")),
    *(("PNDG", "Pending"), ("SBMT", "Submitted"), ("INAC", "INACTIVE")),
)
TRADE_TYPES = (
    *(("TMB", "Market Buy", 0, 1), ("TMS", "Market Sell", 1, 1), ("TSL", "Stop Loss", 1, 0)),
    *(("TLS", "Limit Sell", 1, 0), ("TLB", "Limit Buy", 0, 0)),
)
NATIONAL, LOCAL = tuple(f"US{n}" for n in range(1, 6)), tuple(f"NY{n}" for n in range(1, 10))


def days(first: dt.date, last: dt.date) -> list[dt.date]:
    """All of them, both ends included."""
    return [first + dt.timedelta(days=n) for n in range((last - first).days + 1)]


def next_market_day(day: dt.date) -> dt.date:
    """Monday to Friday."""
    step = {4: 3, 5: 2}.get(day.weekday(), 1)
    return day + dt.timedelta(days=step)


def calendar() -> pa.Table:
    """From FIRST_DAY to LAST_DAY."""
    return rows_of_tuples(
        "calendar",
        [
            (one.year * 10_000 + one.month * 100 + one.day, one, one.year, (one.month + 2) // 3, one.month,
             one.isoweekday(), (one.month, one.day) in ((1, 1), (7, 4), (12, 25)))
            for one in days(FIRST_DAY, LAST_DAY)
        ],
    )  # fmt: skip


def clock() -> pa.Table:
    """Each minute of a day."""
    return rows_of_tuples(
        "clock", [(at, at // 60, at % 60, 570 <= at < 960, 540 <= at < 1020) for at in range(1440)]
    )


def industries() -> pa.Table:
    """Fifteen in five sectors."""
    return rows_of_tuples("industry", [(one, f"Industry {one}", one[0]) for one in INDUSTRIES])


def statuses() -> pa.Table:
    """Of customers, companies, securities and trades."""
    return rows_of_tuples("status_type", STATUSES)


def tax_rates() -> pa.Table:
    """National and local ones."""
    both = (*NATIONAL, *LOCAL)
    return rows_of_tuples(
        "tax_rate", [(one, f"Tax {one}", Decimal(f"0.0{at + 10}500")) for at, one in enumerate(both)]
    )


def trade_types() -> pa.Table:
    """Five."""
    return rows_of_tuples("trade_type", TRADE_TYPES)
