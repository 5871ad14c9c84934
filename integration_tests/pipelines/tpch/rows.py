"""Rows of the eight tables, with the distributions and correlations that the queries depend on.

Scale      1 is 1,500,000 orders with about 6,000,000 line items, as in the specification
Dates      an order is of 1992-01-01 to 1998-08-02; a line item is shipped 1 to 121 days later, promised 30 to 90 days
           later, received 1 to 30 days after shipping. Return flag and status follow from these dates
Orders     a third of the customers has none; keys leave holes, which new orders fill
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from integration_tests.pipelines.feed import dates, decimals, numbered, texts
from integration_tests.pipelines.tpch import words

_FIRST_DAY, _LAST_ORDER, _TODAY = 8035, 10440, 9298  # 1992-01-01, 1998-08-02, 1995-06-17 in days since 1970
_PARTS, _SUPPLIERS, _CUSTOMERS, _ORDERS = 200_000, 10_000, 150_000, 1_500_000
SUPPLIERS_OF_A_PART = 4


@dataclass(frozen=True)
class Sizes:
    """Rows at a scale factor; at least a few of each."""

    parts: int
    suppliers: int
    customers: int
    orders: int
    clerks: int

    @classmethod
    def of(cls, scale: float) -> Sizes:
        """As the specification has them, linear in the scale."""
        suppliers = max(round(_SUPPLIERS * scale), 25)
        return cls(
            max(round(_PARTS * scale), 100),
            suppliers,
            max(round(_CUSTOMERS * scale), 30),
            max(round(_ORDERS * scale), 300),
            max(round(1000 * scale), 3),
        )


def order_keys(numbers: np.ndarray, *, new: bool) -> np.ndarray:
    """Eight of each 32 keys are used by the first load, the next eight by orders that come later."""
    return numbers // 8 * 32 + numbers % 8 + 1 + (8 if new else 0)


def regions() -> pa.Table:
    """Five."""
    names = list(words.REGIONS)
    return pa.table({"r_regionkey": pa.array(range(5), pa.int64()), "r_name": names, "r_comment": names})


def nations() -> pa.Table:
    """Twenty-five, each in a region."""
    return pa.table(
        {
            "n_nationkey": pa.array(range(25), pa.int64()),
            "n_name": [name for name, _ in words.NATIONS],
            "n_regionkey": pa.array([region for _, region in words.NATIONS], pa.int64()),
            "n_comment": [name.lower() for name, _ in words.NATIONS],
        }
    )


def suppliers(rng: np.random.Generator, keys: np.ndarray) -> pa.Table:
    """One in two thousand has complaints, at least one of a load."""
    count = len(keys)
    nation = rng.integers(0, 25, count)
    return pa.table(
        {
            "s_suppkey": keys,
            "s_name": numbered("Supplier", keys),
            "s_address": words.phrases(rng, count),
            "s_nationkey": nation,
            "s_phone": _phones(rng, nation),
            "s_acctbal": decimals(rng.integers(-99_999, 1_000_000, count)),
            "s_comment": words.phrases(rng, count, special="slyly Customer even Complaints", share=0.0005),
        }
    )


def customers(rng: np.random.Generator, keys: np.ndarray) -> pa.Table:
    """The first two digits of a phone number say the nation."""
    count = len(keys)
    nation = rng.integers(0, 25, count)
    return pa.table(
        {
            "c_custkey": keys,
            "c_name": numbered("Customer", keys),
            "c_address": words.phrases(rng, count),
            "c_nationkey": nation,
            "c_phone": _phones(rng, nation),
            "c_acctbal": decimals(rng.integers(-99_999, 1_000_000, count)),
            "c_mktsegment": words.pick(rng, words.SEGMENTS, count),
            "c_comment": words.phrases(rng, count),
        }
    )


def parts(rng: np.random.Generator, keys: np.ndarray) -> pa.Table:
    """A brand is of one manufacturer; the price follows from the key."""
    count = len(keys)
    brand = rng.integers(0, len(words.BRANDS), count)
    return pa.table(
        {
            "p_partkey": keys,
            "p_name": words.part_names(rng, count),
            "p_mfgr": texts([f"Manufacturer#{one}" for one in range(1, 6)], brand // 5),
            "p_brand": texts(words.BRANDS, brand),
            "p_type": words.pick(rng, words.TYPES, count),
            "p_size": pa.array(rng.integers(1, 51, count), pa.int32()),
            "p_container": words.pick(rng, words.CONTAINERS, count),
            "p_retailprice": decimals(_price(keys)),
            "p_comment": words.phrases(rng, count),
        }
    )


def part_suppliers(rng: np.random.Generator, keys: np.ndarray, sizes: Sizes) -> pa.Table:
    """Four suppliers of each part."""
    part = np.repeat(keys, SUPPLIERS_OF_A_PART)
    number = np.tile(np.arange(SUPPLIERS_OF_A_PART), len(keys))
    return pa.table(
        {
            "ps_partkey": part,
            "ps_suppkey": supplier_of(part, number, sizes.suppliers),
            "ps_availqty": pa.array(rng.integers(1, 10_000, len(part)), pa.int32()),
            "ps_supplycost": decimals(rng.integers(100, 100_001, len(part))),
            "ps_comment": words.phrases(rng, len(part)),
        }
    )


def supplier_of(part: np.ndarray, number: np.ndarray, count: int) -> np.ndarray:
    """The supplier of this number (0 to 3) of a part: four different ones, spread over all."""
    return (part + number * (count // 4 + (part - 1) // count % 4)) % count + 1


def orders_and_lines(
    rng: np.random.Generator, keys: np.ndarray, sizes: Sizes
) -> tuple[pa.Table, pa.Table, np.ndarray]:
    """Orders, their one to seven line items, and how many each order has."""
    counts = rng.integers(1, 8, len(keys))
    day = rng.integers(_FIRST_DAY, _LAST_ORDER + 1, len(keys))
    lines, open_lines, total = _lines(rng, keys, counts, day, sizes)
    customer = rng.integers(1, sizes.customers + 1, len(keys))
    customer = np.where(customer % 3 == 0, customer - 1, customer)  # each third has no orders
    status = np.where(open_lines == 0, 0, np.where(open_lines == counts, 1, 2))
    rows = pa.table(
        {
            "o_orderkey": keys,
            "o_custkey": customer,
            "o_orderstatus": texts(("F", "O", "P"), status),
            "o_totalprice": decimals(total),
            "o_orderdate": dates(day),
            "o_orderpriority": words.pick(rng, words.PRIORITIES, len(keys)),
            "o_clerk": words.pick(rng, [f"Clerk#{one:09d}" for one in range(1, sizes.clerks + 1)], len(keys)),
            "o_shippriority": pa.array(np.zeros(len(keys)), pa.int32()),
            "o_comment": words.phrases(rng, len(keys), special="quick special deposits requests", share=0.01),
        }
    )
    return rows, lines, counts


def _lines(
    rng: np.random.Generator, keys: np.ndarray, counts: np.ndarray, day: np.ndarray, sizes: Sizes
) -> tuple[pa.Table, np.ndarray, np.ndarray]:
    """Line items; of each order how many are open, and its price in cents."""
    count = int(counts.sum())
    starts = np.cumsum(counts) - counts
    order = np.repeat(np.arange(len(keys)), counts)
    part = rng.integers(1, sizes.parts + 1, count)
    quantity = rng.integers(1, 51, count)
    price, discount, tax = quantity * _price(part), rng.integers(0, 11, count), rng.integers(0, 9, count)
    shipped = day[order] + rng.integers(1, 122, count)
    received = shipped + rng.integers(1, 31, count)
    is_open = shipped > _TODAY
    returned = np.where(received <= _TODAY, rng.integers(0, 2, count), 2)
    rows = pa.table(
        {
            "l_orderkey": keys[order],
            "l_partkey": part,
            "l_suppkey": supplier_of(part, rng.integers(0, SUPPLIERS_OF_A_PART, count), sizes.suppliers),
            "l_linenumber": pa.array(np.arange(count) - starts[order] + 1, pa.int32()),
            "l_quantity": decimals(quantity * 100),
            "l_extendedprice": decimals(price),
            "l_discount": decimals(discount),
            "l_tax": decimals(tax),
            "l_returnflag": texts(("R", "A", "N"), returned),
            "l_linestatus": texts(("F", "O"), is_open.astype(np.int64)),
            "l_shipdate": dates(shipped),
            "l_commitdate": dates(day[order] + rng.integers(30, 91, count)),
            "l_receiptdate": dates(received),
            "l_shipinstruct": words.pick(rng, words.INSTRUCTIONS, count),
            "l_shipmode": words.pick(rng, words.SHIP_MODES, count),
            "l_comment": words.phrases(rng, count),
        }
    )
    paid = price * (100 + tax) * (100 - discount) // 10_000
    return rows, np.add.reduceat(is_open.astype(np.int64), starts), np.add.reduceat(paid, starts)


def _price(part: np.ndarray) -> np.ndarray:
    """Cents: from 900.00 to about 2,100.00."""
    return 90_000 + part // 10 % 20_001 + 100 * (part % 1000)


def _phones(rng: np.random.Generator, nation: np.ndarray) -> pa.Array:
    digits = rng.integers(0, 1000, (len(nation), 3)).tolist()
    return pa.array(
        [f"{10 + at}-{a:03d}-{b:03d}-{c:04d}" for at, (a, b, c) in zip(nation.tolist(), digits, strict=True)],
        pa.string(),
    )
