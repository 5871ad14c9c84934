"""Customers, their accounts, and the list of prospects: actions of the history, then change data capture.

INVARIANT  a customer has one event a day at most, an account as well: a version begins on a day.
"""

from __future__ import annotations

import datetime as dt
import random
from dataclasses import dataclass, field
from typing import Any

from integration_tests.pipelines.tpcdi.references import LOCAL, NATIONAL

Row = dict[str, Any]
_FIRST = (
    "Ann",
    "Bob",
    "Cleo",
    "Dan",
    "Eve",
    "Finn",
    "Gus",
    "Hana",
    "Ida",
    "Jon",
    "Kim",
    "Lea",
    "Max",
    "Nora",
    "Olaf",
)
_LAST = (
    "Abel",
    "Berg",
    "Cruz",
    "Dahl",
    "Eder",
    "Fox",
    "Gray",
    "Hill",
    "Iyer",
    "Jung",
    "Kerr",
    "Lund",
    "Moss",
    "Nagy",
)
_STREETS = ("Oak Street", "Elm Road", "Lake Avenue", "Hill Lane", "River Way")
_CHANGES = (
    ("address_line1", "postal_code", "city"),
    ("email",),
    ("phone", "email"),
    ("tier",),
    ("lcl_tx_id", "nat_tx_id"),
    ("last_name",),
)


@dataclass
class Account:
    """As it is now. `since`: the day of its first version."""

    number: int
    customer: int
    broker: int
    name: str
    tax_status: int
    since: dt.date
    is_open: bool = True


@dataclass
class People:
    """The state behind the files."""

    rng: random.Random
    brokers: list[int]
    customers: dict[int, Row] = field(default_factory=dict)
    inactive: set[int] = field(default_factory=set)
    accounts: dict[int, Account] = field(default_factory=dict)
    prospects: dict[str, Row] = field(default_factory=dict)
    _touched: dict[int, dt.date] = field(
        default_factory=dict
    )  # customer or minus account → day of its last event
    _prospects_made: int = 0

    def history(self, count: int, days: list[dt.date]) -> list[Row]:
        """Actions of the years before the first batch: a third of the days brings new customers, the rest changes."""
        actions: list[Row] = []
        for at, day in enumerate(days):
            wanted = count * min(3 * (at + 1), len(days)) // len(days)
            while len(self.customers) < max(wanted, 1):
                actions.append(self._new(day))
            for _ in range(max(count // 300, 1)):
                actions += self._action(day)
        return [{"action_id": at, **one} for at, one in enumerate(actions, 1)]

    def _new(self, day: dt.date) -> Row:
        number = self._add_customer(day)
        account = self._add_account(number, day)
        return {"action_type": "NEW", "action_date": day, "c_id": number, **self.customers[number],
                **_account_columns(account)}  # fmt: skip

    def _action(self, day: dt.date) -> list[Row]:
        rng = self.rng
        kind = rng.choices(("ADDACCT", "UPDCUST", "UPDACCT", "CLOSEACCT", "INACT"), (20, 40, 25, 6, 2))[0]
        named: Row = {"action_type": kind, "action_date": day}
        if kind in ("UPDCUST", "INACT"):
            number = self._pick_customer(day)
            if number is None:
                return []
            if kind == "INACT":
                self.inactive.add(number)
                return [{**named, "c_id": number}]
            return [{**named, "c_id": number, **self._change_customer(number)}]
        if kind == "ADDACCT":
            number = rng.choice(sorted(set(self.customers) - self.inactive) or [1])
            account = self._add_account(number, day)
            return [{**named, "c_id": number, **_account_columns(account)}]
        found = self._pick_account(day)
        if found is None:
            return []
        if kind == "CLOSEACCT":
            found.is_open = False
            return [{**named, "c_id": found.customer, "ca_id": found.number}]
        found.name = f"Account {found.number} {rng.randrange(100)}"
        return [{**named, "c_id": found.customer, "ca_id": found.number, "ca_name": found.name}]

    def day(self, day: dt.date, count: int) -> tuple[list[Row], list[Row]]:
        """Change data capture of customers and of accounts; about `count` events of each."""
        customers, accounts = [], []
        for _ in range(max(count // 4, 1)):
            number = self._add_customer(day)
            customers.append(self._customer_row("I", number))
            accounts.append(_account_row("I", self._add_account(number, day)))
        for _ in range(count):
            number = self._pick_customer(day)
            if number is not None:
                if self.rng.random() < 0.08:
                    self.inactive.add(number)
                else:
                    self._change_customer(number)
                customers.append(self._customer_row("U", number))
            found = self._pick_account(day)
            if found is not None:
                if self.rng.random() < 0.2:
                    found.is_open = False
                found.name, found.broker = f"Account {found.number} {day:%j}", self.rng.choice(self.brokers)
                accounts.append(_account_row("U", found))
        return customers, accounts

    def begin_prospects(self, count: int) -> None:
        """A third of them are customers."""
        for number in self.rng.sample(sorted(self.customers), min(count // 3, len(self.customers))):
            self._add_prospect(self.customers[number])
        while len(self.prospects) < count:
            self._add_prospect(None)

    def change_prospects(self) -> None:
        """One in two hundred is another, one in four hundred goes, as many come."""
        few = max(len(self.prospects) // 400, 1)
        for key in self.rng.sample(sorted(self.prospects), 2 * few):
            self.prospects[key] |= {"income": self.rng.randrange(20_000, 400_000), "credit_rating": 700}
        for key in self.rng.sample(sorted(self.prospects), few):
            del self.prospects[key]
            self._add_prospect(None)

    def _add_prospect(self, customer: Row | None) -> None:
        rng = self.rng
        self._prospects_made += 1
        key = f"AG{self._prospects_made:07d}"
        who = customer or self._person(10_000_000 + self._prospects_made)
        self.prospects[key] = {
            "agency_id": key,
            **{name: who[name] for name in ("first_name", "address_line1", "postal_code", "gender")},
            "last_name": who["last_name"].upper(),
            "income": rng.randrange(20_000, 400_000),
            "number_cars": rng.randrange(6),
            "number_children": rng.randrange(6),
            "age": rng.randrange(18, 90),
            "credit_rating": rng.randrange(400, 850),
            "own_or_rent": rng.choice("OR"),
            "net_worth": None if rng.random() < 0.1 else rng.randrange(2_000_000),
        }

    def _add_customer(self, day: dt.date) -> int:
        number = len(self.customers) + 1
        self.customers[number], self._touched[number] = self._person(number), day
        return number

    def _person(self, number: int) -> Row:
        rng = self.rng
        return {
            "tax_id": f"{number:09d}", "last_name": rng.choice(_LAST), "first_name": rng.choice(_FIRST),
            "middle_name": rng.choice((None, "A", "B")), "gender": rng.choice(("M", "F", "m", "x", None)),
            "tier": rng.choice((1, 2, 3, 3, 3, None)), "dob": dt.date(1940, 1, 1) + dt.timedelta(rng.randrange(25_000)),
            "address_line2": None, "state_prov": "NY", "country": "USA", "phone": f"1-555-{rng.randrange(10**7):07d}",
            "email": f"{number}@example.com", "lcl_tx_id": rng.choice(LOCAL), "nat_tx_id": rng.choice(NATIONAL),
            **self._address(number),
        }  # fmt: skip

    def _address(self, number: int) -> Row:
        rng = self.rng
        return {"address_line1": f"{rng.randrange(1, 900)} {rng.choice(_STREETS)} {number}",
                "postal_code": f"{rng.randrange(10_000, 99_999)}", "city": f"City {rng.randrange(40)}"}  # fmt: skip

    def _change_customer(self, number: int) -> Row:
        fresh = {**self._person(number), "email": f"{number}.{self.rng.randrange(100)}@example.com"}
        fresh["tier"] = fresh["tier"] or 2  # a change never takes a value away: NULL means unchanged
        changed = {name: fresh[name] for name in self.rng.choice(_CHANGES)}
        self.customers[number] |= changed
        return changed

    def _add_account(self, customer: int, day: dt.date) -> Account:
        number = len(self.accounts) + 1
        made = Account(
            number, customer, self.rng.choice(self.brokers), f"Account {number}", self.rng.randrange(3), day
        )
        self.accounts[number], self._touched[-number] = made, day
        return made

    def _pick_customer(self, day: dt.date) -> int | None:
        number = self.rng.randint(1, len(self.customers))
        if number in self.inactive or self._touched[number] >= day:
            return None
        self._touched[number] = day
        return number

    def _pick_account(self, day: dt.date) -> Account | None:
        found = self.accounts[self.rng.randint(1, len(self.accounts))]
        if not found.is_open or self._touched[-found.number] >= day:
            return None
        self._touched[-found.number] = day
        return found

    def _customer_row(self, flag: str, number: int) -> Row:
        status = "INAC" if number in self.inactive else "ACTV"
        return {"cdc_flag": flag, "c_id": number, "st_id": status, **self.customers[number]}


def _account_columns(one: Account) -> Row:
    return {"ca_id": one.number, "ca_b_id": one.broker, "ca_name": one.name, "ca_tax_st": one.tax_status}


def _account_row(flag: str, one: Account) -> Row:
    status = "ACTV" if one.is_open else "INAC"
    return {"cdc_flag": flag, "ca_c_id": one.customer, "ca_st_id": status, **_account_columns(one)}
