{{ config(unique_key=['nation', 'o_year']) }}
select nation, o_year, sum(amount) as sum_profit
from (
    select n_name as nation, extract(year from o_orderdate) as o_year,
           l_extendedprice * (1 - l_discount) - ps_supplycost * l_quantity as amount
    from {{ source('raw', 'part') }}, {{ source('raw', 'supplier') }}, {{ source('raw', 'lineitem') }}, {{ source('raw', 'partsupp') }}, {{ source('raw', 'orders') }}, {{ source('raw', 'nation') }}
    where s_suppkey = l_suppkey and ps_suppkey = l_suppkey and ps_partkey = l_partkey and p_partkey = l_partkey
      and o_orderkey = l_orderkey and s_nationkey = n_nationkey and p_name like '%green%'
) profit
group by nation, o_year
