"""Trades and their history, holdings, cash, watches and prices of days."""

from __future__ import annotations

import datetime as dt
import random
from collections.abc import Sequence
from dataclasses import dataclass, field
from decimal import Decimal
from typing import Any

from integration_tests.pipelines.tpcdi.finwire import Security
from integration_tests.pipelines.tpcdi.people import Account

Row = dict[str, Any]


def cents(value: int) -> Decimal:
    """An amount of money."""
    return Decimal(value).scaleb(-2)


@dataclass
class Trading:
    """`trades`: those that are written next, by number; `open`: those that wait. The lists: rows to be written."""

    rng: random.Random
    open: dict[int, Row] = field(default_factory=dict)
    trades: dict[int, Row] = field(default_factory=dict)
    history: list[Row] = field(default_factory=list)
    holdings: list[Row] = field(default_factory=list)
    cash: list[Row] = field(default_factory=list)
    watches: list[Row] = field(default_factory=list)
    prices: list[Row] = field(default_factory=list)
    _price: dict[str, int] = field(default_factory=dict)  # symbol → cents, the last close
    _held: dict[tuple[int, str], int] = field(default_factory=dict)
    _watched: dict[tuple[int, str], bool] = field(default_factory=dict)
    _numbers: dict[str, int] = field(default_factory=dict)

    def day(
        self,
        day: dt.date,
        accounts: Sequence[Account],
        customers: Sequence[int],
        securities: Sequence[Security],
        count: int,
    ) -> None:
        """Prices of all securities, `count` new trades, most waiting ones done, payments, watches."""
        rng = self.rng
        known = [one for one in securities if one.since <= day]
        for one in known:
            self._quote(day, one.symbol)
        for number in [one for one in self.open if rng.random() < 0.7]:
            self._close(number, day)
        for _ in range(count if known and accounts else 0):
            self._trade(day, rng.choice(accounts), rng.choice(known).symbol)
        for _ in range(max(count // 3, 1)):
            self._pay(rng.choice(accounts).number, day, rng.randrange(-50_000, 100_000), "transfer")
        for _ in range(max(count // 3, 1) if known else 0):
            self._watch(day, rng.choice(customers), rng.choice(known).symbol)

    def correct(self, days: Sequence[dt.date], securities: Sequence[Security]) -> None:
        """The exchange corrects one price of one of these days."""
        day, one = self.rng.choice(days), self.rng.choice(securities)
        if one.since <= day:
            self._quote(day, one.symbol)

    def _number(self, of: str) -> int:
        self._numbers[of] = self._numbers.get(of, 0) + 1
        return self._numbers[of]

    def _moment(self, day: dt.date) -> dt.datetime:
        return dt.datetime.combine(day, dt.time(10)) + dt.timedelta(seconds=self.rng.randrange(20_000))

    def _quote(self, day: dt.date, symbol: str) -> None:
        rng = self.rng
        close = max(self._price.get(symbol, rng.randrange(1_000, 20_000)) + rng.randrange(-200, 205), 500)
        self._price[symbol] = close
        self.prices.append(
            {"dm_date": day, "dm_s_symb": symbol, "dm_close": cents(close),
             "dm_high": cents(close + rng.randrange(150)), "dm_low": cents(close - rng.randrange(150)),
             "dm_vol": rng.randrange(1_000, 1_000_000)}
        )  # fmt: skip

    def _trade(self, day: dt.date, account: Account, symbol: str) -> None:
        rng, number, moment = self.rng, self._number("trade"), self._moment(day)
        kind = rng.choice(("TMB", "TMS", "TSL", "TLS", "TLB"))
        is_market = kind in ("TMB", "TMS")
        row = {
            "t_id": number, "t_dts": moment, "t_st_id": "SBMT" if is_market else "PNDG", "t_tt_id": kind,
            "t_is_cash": rng.random() < 0.8, "t_s_symb": symbol, "t_qty": rng.randrange(1, 800),
            "t_bid_price": cents(self._price[symbol]), "t_ca_id": account.number, "t_exec_name": f"Clerk {number % 40}",
        }  # fmt: skip
        self.open[number] = self.trades[number] = row
        self._note(row, moment)
        if is_market and rng.random() < 0.8:
            self._close(number, day)

    def _close(self, number: int, day: dt.date) -> None:
        rng, row = self.rng, dict(self.open.pop(number))
        moment = max(self._moment(day), row["t_dts"] + dt.timedelta(seconds=1))
        row["t_dts"], row["t_st_id"] = moment, "CNCL" if rng.random() < 0.1 else "CMPT"
        self.trades[number] = row
        self._note(row, moment)
        if row["t_st_id"] == "CNCL":
            return
        price = self._price[row["t_s_symb"]]
        value = price * row["t_qty"]
        fee = value + 1 if rng.random() < 0.01 else rng.randrange(100, 900)  # one in a hundred is a message
        row |= {"t_trade_price": cents(price), "t_chrg": cents(min(fee, 9_999_999)),
                "t_comm": cents(value // 100 % 10**6), "t_tax": cents(value // 50 % 10**6)}  # fmt: skip
        self._hold(row)
        if row["t_is_cash"]:
            sign = -1 if row["t_tt_id"] in ("TMB", "TLB") else 1
            self._pay(row["t_ca_id"], moment.date(), sign * min(value, 9_999_999), f"trade {number}")

    def _note(self, row: Row, moment: dt.datetime) -> None:
        self.history.append({"th_t_id": row["t_id"], "th_dts": moment, "th_st_id": row["t_st_id"]})

    def _hold(self, row: Row) -> None:
        key = row["t_ca_id"], row["t_s_symb"]
        before = self._held.get(key, 0)
        after = before + (1 if row["t_tt_id"] in ("TMB", "TLB") else -1) * row["t_qty"]
        self._held[key] = after
        named = {"hh_before_qty": before, "hh_after_qty": after, "hh_t_id": row["t_id"]}
        self.holdings.append({"hh_h_t_id": row["t_id"], **named})
        if before and row["t_id"] > 1 and self.rng.random() < 0.3:  # an earlier lot is changed, too
            self.holdings.append({"hh_h_t_id": self.rng.randint(1, row["t_id"] - 1), **named})

    def _pay(self, account: int, day: dt.date, amount: int, name: str) -> None:
        self.cash.append({"ct_id": self._number("cash"), "ct_ca_id": account, "ct_dts": self._moment(day),
                          "ct_amt": cents(amount), "ct_name": name})  # fmt: skip

    def _watch(self, day: dt.date, customer: int, symbol: str) -> None:
        is_active = self._watched.get((customer, symbol))
        if is_active is False:
            return
        action = "CNCL" if is_active else "ACTV"
        self._watched[customer, symbol] = not is_active
        self.watches.append(
            {"w_c_id": customer, "w_s_symb": symbol, "w_dts": self._moment(day), "w_action": action}
        )
