"""Queries whose rows follow from changed rows: name → (SQL, key). By deltas, by keys that are evaluated, by state."""

from __future__ import annotations

from integration_tests.spark.traced_world import P, R, S

FOLLOWED = {
    "a table at two states": (
        (
            f"select o.id, r.name, f.name as before from {S} o join {R} r on r.id = o.product "
            f"join {R} version as of 1 f on f.id = o.product"
        ),
        "id",
    ),
    "rows": (f"select id, customer, amount * 2 as a from {S} where amount > 2", "id"),
    "star join": (
        f"select o.id, c.name, r.name as x from {S} o join {P} c on o.customer = c.id join {R} r on r.id = o.product",
        "id",
    ),
    "self join": (f"select e.id, b.name from {P} e join {P} b on e.boss = b.id", "id"),
    "union all": (
        f"select 'p' as kind, id, name from {P} union all select 'r', id, name from {R} where id > 0",
        "kind,id",
    ),
    "union all of one table": (
        f"select 1 as part, id, name from {P} where id > 3 union all select 2, id, name from {P}",
        "part,id",
    ),
    "count and sum": (
        f"select coalesce(customer, -1) as customer, count(*) n, sum(amount) s from {S} group by 1",
        "customer",
    ),
    "star join with count and sum": (
        (
            f"select r.name, count(*) n, sum(o.amount) s, max(c.name) m from {S} o join {P} c on o.customer = c.id "
            f"join {R} r on r.id = o.product group by r.name"
        ),
        "name",
    ),
    "self join of groups": (
        f"select b.id, count(*) n, min(e.id) first from {P} e join {P} b on e.boss = b.id group by b.id",
        "id",
    ),
    "total": (
        f"select 1 as one, count(*) n, sum(amount) s, coalesce(sum(id), 0) z, max(amount) m, min(customer) c from {S}",
        "one",
    ),
    "total of a join": (
        f"select 1 as one, count(*) n, sum(amount) s, count(c.name) z from {S} o join {P} c on o.customer = c.id",
        "one",
    ),
    "distinct": (f"select distinct product, amount from {S} where amount > 0", "product,amount"),
    "filter": (
        (
            f"select product, count(*) filter (where amount > 4) n, sum(amount) filter (where id % 2 = 0) s, "
            f"bool_or(amount > 8) b, count_if(amount > 3) c from {S} group by product"
        ),
        "product",
    ),
    "count distinct": (
        (
            f"select product, count(distinct customer) d, count(distinct customer, amount) e, count(*) n, "
            f"max(amount) m, count(distinct amount) filter (where id % 2 = 0) f from {S} group by product"
        ),
        "product",
    ),
    "count distinct of new and unchanged groups": (
        (
            f"select id, count(distinct product) d, count(distinct name) e, sum(amount) s from "
            f"(select o.*, c.name from {S} o join {P} c on c.id <> o.customer) group by id"
        ),
        "id",
    ),
    "no count": (f"select product, sum(amount) s, max(id) m from {S} group by product", "product"),
    "explode": (
        f"select coalesce(id, 0) as id, x from {S} lateral view explode(array(1, amount + 100)) as x",
        "id,x",
    ),
    "semi join, the left side": (
        f"select id, name from {P} c where exists (select 1 from demo.fixed f where f.id = c.id)",
        "id",
    ),
}
# nodes that fall into parts by a key, alone, over each other and below groups
IN_PARTS = {
    "left join": (f"select o.id, o.amount, c.name from {S} o left join {P} c on o.customer = c.id", "id"),
    "right join of groups": (
        (
            f"select c.id, o.n from (select customer, count(*) n from {S} group by customer) o "
            f"right join {P} c on o.customer = c.id"
        ),
        "id",
    ),
    "full join of groups": (
        (
            f"select coalesce(o.customer, -1) as customer, coalesce(c.id, -1) as id, o.n, c.name from "
            f"(select customer, count(*) n from {S} group by customer) o full join {P} c on o.customer = c.id"
        ),
        "customer,id",
    ),
    "exists": (
        f"select id, name from {P} c where exists (select 1 from {S} o where o.customer = c.id)",
        "id",
    ),
    "not exists in groups": (
        (
            f"select o.product, count(*) n, sum(o.amount) s from {S} o where not exists (select 1 from {P} c "
            f"where c.boss = o.customer and c.id <> o.id) group by o.product"
        ),
        "product",
    ),
    "exists or a condition": (
        f"select id, name from {P} c where exists (select 1 from {S} o where o.customer = c.id) or name = 'n7'",
        "id",
    ),
    "count of counts": (
        (
            f"select n, count(*) m, sum(s) s from (select c.id, count(o.id) n, sum(o.amount) s from {P} c "
            f"left join {S} o on o.customer = c.id group by c.id) group by n"
        ),
        "n",
    ),
    "total of groups": (
        (
            f"select 1 as one, count(*) m, max(n) n, sum(s) s from "
            f"(select customer, product, count(*) n, sum(amount) s from {S} group by customer, product)"
        ),
        "one",
    ),
    "keys of many types": (
        (
            f"select 1 as one, count(*) c, sum(n * n) s from (select cast(customer as decimal(9, 2)) d, "
            f"timestamp_millis(customer * 1001) t, date_add(date'2024-03-31', cast(customer as int)) day, "
            f"cast(cast(customer as string) as binary) b, customer > 2 f, repeat('\\'', cast(customer as int)) q, "
            f"count(*) n from {S} group by all)"
        ),
        "one",
    ),
    "groups below a join": (
        (
            f"select c.id, c.name, o.n, o.distinct from {P} c join (select customer, count(*) n, "
            f"count(distinct product) distinct, max(amount) m from {S} group by customer having count(*) > 2) o "
            f"on o.customer = c.id"
        ),
        "id",
    ),
    "scalar subquery": (
        (
            f"select id, amount, (select max(amount) from {S} i where i.product = o.product and i.id < 30) m "
            f"from {S} o"
        ),
        "id",
    ),
    "above the largest of the product": (
        (
            f"select product, count(*) n from {S} o where amount >= "
            f"(select max(amount) from {S} i where i.product = o.product) group by product"
        ),
        "product",
    ),
    "window": (
        (
            f"select id, product, amount, row_number() over (partition by product order by amount, id) n, "
            f"rank() over (partition by product order by amount) r, lag(amount) over (partition by product order by "
            f"amount, id) l, sum(amount) over (partition by product) s from {S}"
        ),
        "id",
    ),
    "top of each group in a total": (
        (
            f"select 1 as one, count(*) n, sum(amount) s from (select *, row_number() over (partition by product "
            f"order by amount desc, id) n from {S}) where n = 1"
        ),
        "one",
    ),
    "groups over a window over a join": (
        (
            f"select r, count(*) n, max(name) m from (select c.name, dense_rank() over (partition by c.boss order by "
            f"o.amount) r from {S} o join {P} c on c.id = o.customer) group by r"
        ),
        "r",
    ),
    "intersect": (f"select customer as id from {S} where customer > 0 intersect select id from {P}", "id"),
    "except": (f"select id from {P} except select customer from {S}", "id"),
    "except all": (f"select id, 'x' as x from {P} except all select product, 'x' from {S}", "id"),
    "not in": (f"select id, name from {P} where id not in (select id from {S} where amount > 7)", "id"),
    "union of groups and rows": (
        (
            f"select 'n' as kind, customer as id, count(*) n from {S} where customer > 0 group by customer "
            f"union all select 'p', id, boss from {P}"
        ),
        "kind,id",
    ),
    "left join of a left join": (
        (
            f"select o.id, c.name, b.name as boss, r.name as product from {S} o left join {P} c on c.id = o.customer "
            f"left join {P} b on b.id = c.boss left join {R} r on r.id = o.product and r.name <> 'one'"
        ),
        "id",
    ),
}
FOLLOWED |= IN_PARTS
NESTED = {  # their keys are evaluated by the statement, not by one job
    "no row of a collated text": (
        f"select id, length(n) as n from (select id, name collate utf8_lcase as n from {P} where boss < 0)",
        "id",
    ),
    "a correlated subquery inside of another one": (
        (
            f"select id from {P} where id in (select customer from {S} o where amount >= "
            f"(select max(amount) from {S} i where i.product = o.product))"
        ),
        "id",
    ),
}
EVALUATED = {
    "vanishing groups of two columns": (
        f"select product, customer, max(amount) m, sum(amount / 3.0D) f from {S} where customer > 0 group by 1, 2",
        "product,customer",
    ),
    "texts, dates and decimals": (
        (
            f"select concat('it''s ', name, '\\u00e9') as name, date_add(date'2024-03-31', cast(id as int)) as day, "
            f"cast(boss as decimal(9, 2)) as d, count(*) n from {P} where boss is not null group by all"
        ),
        "name,day,d",
    ),
    "moments": (
        (
            f"select timestamp_millis(product * 1001) as at, max(timestamp_millis(amount)) as last, "
            f"percentile(amount, 0.5) as p from {S} group by 1"
        ),
        "at",
    ),
}


# tables of which the driver reads the rows of keys: in some queries not of all of them
BY_VALUES = {
    "percentiles": (
        (
            f"select product, percentile(amount, 0.5) p, median(id) m, count(distinct customer) n, sum(amount) s, "
            f"avg(cast(amount as decimal(9, 2))) a from {S} where customer > 1 group by product having count(*) > 1"
        ),
        "product",
    ),
    "a text": (f"select name, percentile(boss, 0.25) p, max(boss) b from {P} group by name", "name"),
    "two columns": (
        f"select customer, product, median(amount) m from {S} where customer is not null group by 1, 2",
        "customer,product",
    ),
    "both sides": (
        (
            f"select c.id, percentile(o.amount, 0.5) p, count(o.id) n, max(c.name) m from {P} c "
            f"join {S} o on o.customer = c.id where o.customer > 0 group by c.id"
        ),
        "id",
    ),
    "one side": (
        (
            f"select o.product, median(c.boss) p, count(*) n from {S} o left join {P} c on o.customer = c.id "
            f"group by o.product"
        ),
        "product",
    ),
    "a table twice": (
        (
            f"select o.customer, median(o.amount) p, count(*) n from {S} o join {S} q on q.customer = o.customer "
            f"where q.amount > 2 and o.customer > 0 and q.customer > 0 group by 1"
        ),
        "customer",
    ),
    "a subquery": (
        f"select product, median(amount) m from {S} where amount > (select min(boss) from {P}) group by product",
        "product",
    ),
    "a union": (
        (
            f"select k, median(v) p from (select product as k, amount as v from {S} union all "
            f"select id, boss from {P}) group by k"
        ),
        "k",
    ),
}
# a sum of floats, a key that is an expression, one view in two places, a window
EVALUATED |= {
    "a query twice": (
        (
            f"with q as (select product, customer, amount from {S} where customer is not null) "
            f"select customer, max(m) m from (select customer, median(amount) m from q group by 1 "
            f"union all select customer, count(distinct product) from q group by 1) group by 1"
        ),
        "customer",
    ),
    "a window": (
        (
            f"select customer, product, amount from (select *, row_number() over (partition by customer "
            f"order by amount, id) as r from {S} where customer is not null) where r = 1"
        ),
        "customer",
    ),
}
OF_STATE = {
    "average and ratio": (
        (f"select product, avg(amount) a, 100 * sum(case when customer > 1 then amount end) / sum(amount) r, "
        f"avg(cast(amount as decimal(9,2))) d, avg(cast(amount as int)) i from {S} where product is not null "
        f"group by product having sum(amount) <> 0 or sum(amount) is null"),
        "product",
    ),
    "star join": (
        (f"select r.name, avg(o.amount) a, round(sum(o.amount) / count(*), 3) q, coalesce(max(c.name), '-') m "
        f"from {S} o join {P} c on o.customer = c.id join {R} r on r.id = o.product group by r.name"),
        "name",
    ),
    "having": (
        (f"select product, count(*) n, max(amount) m from {S} group by product "
        f"having product is not null and (count(*) > 2 or max(amount) > 8)"),
        "product",
    ),
    "having of another column": (
        f"select product from {S} group by product having product > 1 and min(customer) < 3",
        "product",
    ),
    "total": (
        f"select 1 as one, avg(amount) a, sum(amount) * 1.0 / count(*) q, coalesce(min(amount), -1) m from {S}",
        "one",
    ),
    "average over groups": (
        (f"select r, avg(n) a, count(*) n from (select customer % 3 as r, customer, count(*) n from {S} "
        f"where customer is not null group by customer) group by r having count(*) > 0"),
        "r",
    ),
    "over a subquery": (
        (f"select p + 1 as q, p, s / n as a from (select product p, sum(amount) s, count(*) n from {S} "
        f"where product is not null group by product) where n > 1"),
        "p",
    ),
    "filter": (
        (f"select coalesce(product, -1) as p, avg(amount) filter (where id % 2 = 0) a, "
        f"count(*) filter (where amount > 4) + 1 as n from {S} group by 1"),
        "p",
    ),
}  # fmt: skip
