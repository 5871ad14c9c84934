{{ config(unique_key='s_name') }}
-- without LIMIT; q21_top has the first hundred
select s_name, count(*) as numwait
from {{ source('raw', 'supplier') }}, {{ source('raw', 'lineitem') }} l1, {{ source('raw', 'orders') }}, {{ source('raw', 'nation') }}
where s_suppkey = l1.l_suppkey and o_orderkey = l1.l_orderkey and o_orderstatus = 'F'
  and l1.l_receiptdate > l1.l_commitdate
  and exists (
    select 1 from {{ source('raw', 'lineitem') }} l2 where l2.l_orderkey = l1.l_orderkey and l2.l_suppkey <> l1.l_suppkey
  )
  and not exists (
    select 1 from {{ source('raw', 'lineitem') }} l3
    where l3.l_orderkey = l1.l_orderkey and l3.l_suppkey <> l1.l_suppkey and l3.l_receiptdate > l3.l_commitdate
  )
  and s_nationkey = n_nationkey and n_name = 'SAUDI ARABIA'
group by s_name
