"""Small star and snowflake schemas after TPC-H and TPC-DS in two states, and models over them.

The rows are random, the columns are those that the queries use. In the second state rows of every table are changed,
moved to another key, deleted and added.
"""

from __future__ import annotations

import random
from dataclasses import dataclass

import pyarrow as pa

from tablestore_engine.api import Engine, TableSpec, WriteSpec

# of each table: its key columns, then its others; `ref N`: a key of N rows, one in ten NULL; else values to choose from
TABLES: dict[str, tuple[int, dict[str, object], dict[str, object]]] = {
    "region": (3, {"r_regionkey": int}, {"r_name": ("ASIA", "EUROPE", "AFRICA")}),
    "nation": (6, {"n_nationkey": int}, {"n_name": ("FRANCE", "CHINA", "PERU", "INDIA"), "n_regionkey": 3}),
    "customer": (
        12,
        {"c_custkey": int},
        {"c_name": str, "c_nationkey": 6, "c_mktsegment": ("BUILDING", "AUTO")},
    ),
    "supplier": (6, {"s_suppkey": int}, {"s_name": str, "s_nationkey": 6}),
    "part": (8, {"p_partkey": int}, {"p_type": ("STEEL", "TIN"), "p_size": (1, 2, 3)}),
    "partsupp": (20, {"ps_partkey": 8, "ps_suppkey": 6}, {"ps_supplycost": (10, 20, 30)}),
    "orders": (
        20,
        {"o_orderkey": int},
        {
            "o_custkey": 12,
            "o_orderdate": ("1995-01-01", "1995-06-01"),
            "o_orderpriority": ("1-URGENT", "5-LOW"),
        },
    ),
    "lineitem": (
        60,
        {"l_orderkey": 20, "l_linenumber": 4},
        {
            "l_partkey": 8,
            "l_suppkey": 6,
            "l_quantity": (1, 5, 30),
            "l_extendedprice": (100, 200, 300),
            "l_returnflag": ("R", "N"),
            "l_shipmode": ("AIR", "MAIL"),
        },
    ),
    "date_dim": (
        10,
        {"d_date_sk": int},
        {"d_year": (1999, 2000), "d_moy": (11, 12), "d_day_name": ("Sunday", "Monday")},
    ),
    "item": (
        8,
        {"i_item_sk": int},
        {
            "i_item_id": ("A", "B", "C", "D"),
            "i_brand_id": (1, 2, 3),
            "i_class": ("x", "y"),
            "i_category": ("Books", "Music"),
            "i_current_price": (1, 2, 9),
        },
    ),
    "store": (4, {"s_store_sk": int}, {"s_store_name": ("ought", "able"), "s_state": ("TN", "CA")}),
    "promotion": (4, {"p_promo_sk": int}, {"p_channel_email": ("Y", "N")}),
    "customer_address": (8, {"ca_address_sk": int}, {"ca_state": ("TN", "CA", "NY"), "ca_zip": str}),
    "store_sales": (
        60,
        {"ss_item_sk": 8, "ss_ticket_number": 30},
        {
            "ss_sold_date_sk": 10,
            "ss_store_sk": 4,
            "ss_promo_sk": 4,
            "ss_addr_sk": 8,
            "ss_sales_price": (10, 20, 30),
            "ss_quantity": (1, 2),
        },
    ),
    "web_sales": (
        40,
        {"ws_item_sk": 8, "ws_order_number": 20},
        {"ws_sold_date_sk": 10, "ws_bill_addr_sk": 8, "ws_sales_price": (5, 15)},
    ),
}


@dataclass(frozen=True)
class StarModel:
    """A query and the columns of its key."""

    key: tuple[str, ...]
    sql: str


MODELS: dict[str, StarModel] = {
    "H wide line items, nations in two roles": StarModel(
        ("l_orderkey", "l_linenumber"),
        """select l.l_orderkey, l.l_linenumber, l.l_extendedprice, o.o_orderdate, c.c_name, cn.n_name as
        customer_nation,
        cr.r_name as region, p.p_type, s.s_name, sn.n_name as supplier_nation, ps.ps_supplycost
        from demo.lineitem l join demo.orders o on o.o_orderkey = l.l_orderkey
        left join demo.customer c on c.c_custkey = o.o_custkey left join demo.nation cn on cn.n_nationkey =
        c.c_nationkey
        left join demo.region cr on cr.r_regionkey = cn.n_regionkey left join demo.part p on p.p_partkey = l.l_partkey
        left join demo.supplier s on s.s_suppkey = l.l_suppkey left join demo.nation sn on sn.n_nationkey =
        s.s_nationkey
        left join demo.partsupp ps on ps.ps_partkey = l.l_partkey and ps.ps_suppkey = l.l_suppkey""",
    ),
    "H 3 revenue of orders of a segment": StarModel(
        ("l_orderkey",),
        """select l_orderkey, sum(l_extendedprice) as revenue, o_orderdate from demo.customer, demo.orders,
        demo.lineitem
        where c_mktsegment = 'BUILDING' and c_custkey = o_custkey and l_orderkey = o_orderkey
        and o_orderdate < '1995-03-15' group by l_orderkey, o_orderdate""",
    ),
    "H 4 priorities of orders with a returned item": StarModel(
        ("o_orderpriority",),
        """select o_orderpriority, count(*) as orders from demo.orders where exists (select 1 from demo.lineitem
        where l_orderkey = o_orderkey and l_returnflag = 'R') group by o_orderpriority""",
    ),
    "H 5 revenue of nations by local suppliers": StarModel(
        ("n_name",),
        """select n_name, sum(l_extendedprice) as revenue from demo.customer, demo.orders, demo.lineitem, demo.supplier,
        demo.nation, demo.region where c_custkey = o_custkey and l_orderkey = o_orderkey and l_suppkey = s_suppkey
        and c_nationkey = s_nationkey and s_nationkey = n_nationkey and n_regionkey = r_regionkey and r_name = 'ASIA'
        group by n_name""",
    ),
    "H 7 volume between nations": StarModel(
        ("supp_nation", "cust_nation"),
        """select supp_nation, cust_nation, sum(volume) as revenue from (select n1.n_name as supp_nation,
        n2.n_name as cust_nation, l_extendedprice as volume from demo.supplier, demo.lineitem, demo.orders,
        demo.customer, demo.nation n1, demo.nation n2 where s_suppkey = l_suppkey and o_orderkey = l_orderkey
        and c_custkey = o_custkey and s_nationkey = n1.n_nationkey and c_nationkey = n2.n_nationkey
        and ((n1.n_name = 'FRANCE' and n2.n_name = 'CHINA') or (n1.n_name = 'CHINA' and n2.n_name = 'FRANCE'))) shipping
        group by supp_nation, cust_nation""",
    ),
    "H 9 profit of nations and years": StarModel(
        ("nation", "year"),
        """select n_name as nation, substr(o_orderdate, 1, 4) as year,
        sum(l_extendedprice - ps_supplycost * l_quantity) as profit from demo.part, demo.supplier, demo.lineitem,
        demo.partsupp, demo.orders, demo.nation where s_suppkey = l_suppkey and ps_suppkey = l_suppkey
        and ps_partkey = l_partkey and p_partkey = l_partkey and o_orderkey = l_orderkey and s_nationkey = n_nationkey
        and p_type like '%E%' group by n_name, substr(o_orderdate, 1, 4)""",
    ),
    "H 10 customers who returned items": StarModel(
        ("c_custkey",),
        """select c_custkey, c_name, n_name, sum(l_extendedprice) as lost from demo.customer
        join demo.orders on c_custkey = o_custkey join demo.lineitem on l_orderkey = o_orderkey
        left join demo.nation on c_nationkey = n_nationkey where l_returnflag = 'R' group by c_custkey, c_name,
        n_name""",
    ),
    "H 12 priorities by ship mode": StarModel(
        ("l_shipmode",),
        """select l_shipmode, sum(case when o_orderpriority = '1-URGENT' then 1 else 0 end) as urgent
        from demo.orders, demo.lineitem where o_orderkey = l_orderkey group by l_shipmode""",
    ),
    "H 13 orders of each customer": StarModel(
        ("c_custkey",),
        """select c_custkey, count(o_orderkey) as orders from demo.customer left join demo.orders
        on c_custkey = o_custkey and o_orderpriority <> '5-LOW' group by c_custkey""",
    ),
    "H 18 large orders": StarModel(
        ("o_orderkey",),
        """select o_orderkey, c_name, o_orderdate, sum(l_quantity) as quantity from demo.customer, demo.orders,
        demo.lineitem
        where o_orderkey in (select l_orderkey from demo.lineitem group by l_orderkey having sum(l_quantity) > 20)
        and c_custkey = o_custkey and o_orderkey = l_orderkey group by o_orderkey, c_name, o_orderdate""",
    ),
    "H 21 suppliers who kept orders waiting": StarModel(
        ("s_name",),
        """select s_name, count(*) as waits from demo.supplier, demo.lineitem l1, demo.orders, demo.nation
        where s_suppkey = l1.l_suppkey and o_orderkey = l1.l_orderkey and l1.l_returnflag = 'R'
        and exists (select 1 from demo.lineitem l2 where l2.l_orderkey = l1.l_orderkey and l2.l_suppkey <> l1.l_suppkey)
        and not exists (select 1 from demo.lineitem l3 where l3.l_orderkey = l1.l_orderkey
        and l3.l_suppkey <> l1.l_suppkey and l3.l_returnflag = 'R')
        and s_nationkey = n_nationkey group by s_name""",
    ),
    "H 22 customers without an order": StarModel(
        ("c_custkey",),
        """select c_custkey, c_name from demo.customer left join demo.orders on o_custkey = c_custkey
        where o_orderkey is null""",
    ),
    "DS 3 brands of a month": StarModel(
        ("d_year", "i_brand_id"),
        """select d_year, i_brand_id, sum(ss_sales_price) as total from demo.date_dim dt, demo.store_sales, demo.item
        where dt.d_date_sk = ss_sold_date_sk and ss_item_sk = i_item_sk and d_moy = 11 group by d_year, i_brand_id""",
    ),
    "DS 7 averages of promoted items": StarModel(
        ("i_item_id",),
        """select i_item_id, avg(ss_quantity) as quantity, avg(ss_sales_price) as price from demo.store_sales,
        demo.date_dim, demo.item, demo.promotion where ss_sold_date_sk = d_date_sk and ss_item_sk = i_item_sk
        and ss_promo_sk = p_promo_sk and p_channel_email = 'N' and d_year = 2000 group by i_item_id""",
    ),
    "DS 19 brands bought away from home": StarModel(
        ("i_brand_id",),
        """select i_brand_id, sum(ss_sales_price) as total from demo.date_dim, demo.store_sales, demo.item,
        demo.customer_address, demo.store where d_date_sk = ss_sold_date_sk and ss_item_sk = i_item_sk
        and ss_addr_sk = ca_address_sk and ca_state <> s_state and ss_store_sk = s_store_sk and d_moy = 11
        group by i_brand_id""",
    ),
    "DS 33 three channels": StarModel(
        ("i_brand_id",),
        """with ss as (select i_brand_id, sum(ss_sales_price) as total from demo.store_sales, demo.date_dim,
        demo.customer_address, demo.item where i_item_sk = ss_item_sk and ss_sold_date_sk = d_date_sk and d_year = 1999
        and ss_addr_sk = ca_address_sk and ca_state = 'TN' group by i_brand_id), ws as (select i_brand_id,
        sum(ws_sales_price) as total from demo.web_sales, demo.date_dim, demo.customer_address, demo.item
        where i_item_sk = ws_item_sk and ws_sold_date_sk = d_date_sk and d_year = 1999
        and ws_bill_addr_sk = ca_address_sk and i_category in ('Books') group by i_brand_id)
        select i_brand_id, sum(total) as total from (select * from ss union all select * from ws) group by
        i_brand_id""",
    ),
    "DS 43 days of each store": StarModel(
        ("s_store_name",),
        """select s_store_name, sum(case when d_day_name = 'Sunday' then ss_sales_price else null end) as sun,
        sum(case when d_day_name = 'Monday' then ss_sales_price else null end) as mon from demo.date_dim,
        demo.store_sales, demo.store where d_date_sk = ss_sold_date_sk and s_store_sk = ss_store_sk and d_year = 2000
        group by s_store_name""",
    ),
    "DS 42 categories of a month": StarModel(
        ("d_year", "i_category"),
        """select dt.d_year, item.i_category, sum(ss_sales_price) as total from demo.date_dim dt
        join demo.store_sales on dt.d_date_sk = ss_sold_date_sk join demo.item on ss_item_sk = item.i_item_sk
        where dt.d_moy = 12 group by dt.d_year, item.i_category""",
    ),
    "DS wide sales": StarModel(
        ("ss_item_sk", "ss_ticket_number"),
        """select ss.*, d.d_year, i.i_brand_id, s.s_store_name, p.p_channel_email, ca.ca_state from demo.store_sales ss
        left join demo.date_dim d on d.d_date_sk = ss.ss_sold_date_sk left join demo.item i on i.i_item_sk =
        ss.ss_item_sk
        left join demo.store s on s.s_store_sk = ss.ss_store_sk left join demo.promotion p
        on p.p_promo_sk = ss.ss_promo_sk left join demo.customer_address ca on ca.ca_address_sk = ss.ss_addr_sk""",
    ),
}


def _value(rng: random.Random, kind: object, number: int) -> object:
    if kind is int:
        return number
    if kind is str:
        return f"n{rng.randrange(5)}"
    if isinstance(kind, int):
        return None if rng.random() < 0.1 else rng.randrange(kind)
    assert isinstance(kind, tuple)
    return None if rng.random() < 0.05 else rng.choice(kind)


def _rows(rng: random.Random, name: str, numbers: range) -> list[dict[str, object]]:
    _, keys, others = TABLES[name]
    rows = {}
    for number in numbers:
        key = {one: rng.randrange(kind) if isinstance(kind, int) else number for one, kind in keys.items()}
        rows[tuple(key.values())] = {
            **key,
            **{one: _value(rng, kind, number) for one, kind in others.items()},
        }
    return list(rows.values())


def _write(engine: Engine, name: str, rows: list[dict[str, object]]) -> None:
    _, keys, others = TABLES[name]
    kinds = {**keys, **others}
    schema = pa.schema(
        [(column, pa.string() if _is_text(kind) else pa.int64()) for column, kind in kinds.items()]
    )
    spec = WriteSpec(table=TableSpec(primary_key=tuple(keys), options={"bucket": "1"}))
    engine.write(f"demo.{name}", pa.Table.from_pylist(rows, schema), spec)


def _is_text(kind: object) -> bool:
    return kind is str or (isinstance(kind, tuple) and isinstance(kind[0], str))


def fill(engine: Engine, seed: int) -> dict[str, tuple[int, int]]:
    """Two states of every table; of each the ids of their snapshots."""
    rng = random.Random(seed)
    states = {}
    for name, (count, keys, _) in TABLES.items():
        _write(engine, name, _rows(rng, name, range(count)))
        before = engine.table(f"demo.{name}").latest_snapshot_id()
        changed = [one for one in _rows(rng, name, range(count + 1)) if rng.random() < 0.25]
        _write(engine, name, changed)
        first = next(iter(keys))
        engine.sql(f"delete from demo.{name} where {first} % 5 = {rng.randrange(5)} and {first} > 0")
        after = engine.table(f"demo.{name}").latest_snapshot_id()
        assert before is not None
        assert after is not None
        states[f"demo.{name}"] = (before, after)
    return states
