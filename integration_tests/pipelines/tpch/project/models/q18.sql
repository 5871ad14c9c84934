{{ config(unique_key='o_orderkey') }}
-- without LIMIT; q18_top has the first hundred
select c_name, c_custkey, o_orderkey, o_orderdate, o_totalprice, sum(l_quantity) as quantity
from {{ source('raw', 'customer') }}, {{ source('raw', 'orders') }}, {{ source('raw', 'lineitem') }}
where o_orderkey in (
    select l_orderkey from {{ source('raw', 'lineitem') }}
    group by l_orderkey having sum(l_quantity) > {{ var('q18_quantity') }}
  )
  and c_custkey = o_custkey and o_orderkey = l_orderkey
group by c_name, c_custkey, o_orderkey, o_orderdate, o_totalprice
