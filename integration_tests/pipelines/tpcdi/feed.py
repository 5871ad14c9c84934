"""The historical load of two and a half years, then a batch for each market day."""

from __future__ import annotations

import datetime as dt
import random
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from integration_tests.pipelines.feed import Change, Put, Replace
from integration_tests.pipelines.tpcdi import references
from integration_tests.pipelines.tpcdi.finwire import Wire
from integration_tests.pipelines.tpcdi.people import People
from integration_tests.pipelines.tpcdi.schemas import KEYS, rows_of
from integration_tests.pipelines.tpcdi.trading import Trading

_CUSTOMERS, _COMPANIES, _SECURITIES, _BROKERS, _TRADES, _PROSPECTS = 5_000, 250, 400, 100, 50_000, 10_000
_BROKER, _CLERK = 314, 101  # job codes


class TpcdiFeed:
    """Scale 1: 5,000 customers, 400 securities with 390 days of prices, 50,000 trades. `share`: of the customers that
    change in a day, as in the other feed; trades of a day are as many as in the history.
    """

    keys: Mapping[str, tuple[str, ...]] = KEYS
    project = Path(__file__).parent / "project"
    variables: Mapping[str, str] = {}

    def __init__(self, scale: float, seed: int, share: float) -> None:
        self._rng = random.Random(seed)
        self._scale = scale
        self._day = references.LAST_LOADED
        self._events = max(round(_CUSTOMERS * scale * share), 2)
        self._lines = self._dsn = 0
        self._wire, self._trading = Wire(self._rng), Trading(self._rng)
        self._brokers = list(range(1, max(round(_BROKERS * scale), 5) + 1))
        self._people = People(self._rng, self._brokers)
        days = [one for one in references.days(dt.date(2016, 1, 4), self._day) if one.weekday() < 5]
        self._trades_of_a_day = max(round(_TRADES * scale / len(days)), 3)
        self._days = days

    def first(self) -> Iterator[Change]:
        """All nineteen tables."""
        scale, people = self._scale, self._people
        yield Put("calendar", references.calendar())
        yield Put("clock", references.clock())
        yield Put("industry", references.industries())
        yield Put("status_type", references.statuses())
        yield Put("tax_rate", references.tax_rates())
        yield Put("trade_type", references.trade_types())
        yield self._put("batch_date", [{"batch_id": 1, "batch_date": self._day}])
        employees = [
            *((one, _BROKER) for one in self._brokers),
            *((one, _CLERK) for one in range(10_001, 10_021)),
        ]
        yield self._put("hr", [_employee(number, job) for number, job in employees])
        self._wire.begin(max(round(_COMPANIES * scale), 8), max(round(_SECURITIES * scale), 10))
        yield self._finwire(1)
        before = [one for one in references.days(dt.date(2015, 1, 5), self._day) if one.weekday() < 5]
        yield self._put("customer_mgmt", people.history(max(round(_CUSTOMERS * scale), 40), before))
        people.begin_prospects(max(round(_PROSPECTS * scale), 60))
        for day in self._days:
            self._trade(day)
        yield from self._traded()
        yield self._prospects()
        yield self._put("customer", [])
        yield self._put("account", [])

    def batch(self, number: int) -> Iterator[Change]:
        """The files of the next market day."""
        batch, day = number + 1, references.next_market_day(self._day)
        self._day = day
        yield self._put("batch_date", [{"batch_id": batch, "batch_date": day}])
        if number % 10 == 0:  # a broker comes
            self._brokers.append(len(self._brokers) + 1)
            yield self._put("hr", [_employee(self._brokers[-1], _BROKER)])
        self._wire.day(day)
        yield self._finwire(batch)
        customers, accounts = self._people.day(day, self._events)
        yield self._captured("customer", batch, customers)
        yield self._captured("account", batch, accounts)
        self._days.append(day)
        if number % 3 == 0:
            self._trading.correct(self._days[-20:], list(self._wire.securities.values()))
        self._trade(day)
        yield from self._traded()
        self._people.change_prospects()
        yield self._prospects()

    def _trade(self, day: dt.date) -> None:
        accounts = [one for one in self._people.accounts.values() if one.since <= day and one.is_open]
        customers = sorted({one.customer for one in accounts})
        self._trading.day(
            day, accounts, customers, list(self._wire.securities.values()), self._trades_of_a_day
        )

    def _traded(self) -> Iterator[Change]:
        trading = self._trading
        yield self._put("trade", list(trading.trades.values()))
        yield self._put("trade_history", trading.history)
        yield self._put(
            "holding_history",
            list({(one["hh_h_t_id"], one["hh_t_id"]): one for one in trading.holdings}.values()),
        )
        yield self._put("cash_transaction", trading.cash)
        yield self._put("watch_history", trading.watches)
        yield self._put(
            "daily_market", list({(one["dm_s_symb"], one["dm_date"]): one for one in trading.prices}.values())
        )
        trading.trades = {}
        trading.history, trading.holdings, trading.cash, trading.watches, trading.prices = [], [], [], [], []

    def _captured(self, table: str, batch: int, rows: list[dict[str, Any]]) -> Change:
        first, self._dsn = self._dsn + 1, self._dsn + len(rows)
        return self._put(
            table, [{**row, "cdc_dsn": at, "batch_id": batch} for at, row in enumerate(rows, first)]
        )

    def _finwire(self, batch: int) -> Change:
        lines = self._wire.fetch()
        first, self._lines = self._lines + 1, self._lines + len(lines)
        return self._put(
            "finwire",
            [{"line_id": at, "batch_id": batch, "line": one} for at, one in enumerate(lines, first)],
        )

    def _prospects(self) -> Change:
        return Replace("prospect", rows_of("prospect", self._people.prospects.values()))

    def _put(self, table: str, rows: list[dict[str, Any]]) -> Change:
        return Put(table, rows_of(table, rows))


def _employee(number: int, job: int) -> dict[str, Any]:
    return {"employee_id": number, "manager_id": 10_001, "first_name": f"First {number}", "last_name": f"Last {number}",
            "job_code": job, "branch": f"Branch {number % 5}", "office": f"OFF{number % 9}",
            "phone": f"555-{number:05d}"}  # fmt: skip
