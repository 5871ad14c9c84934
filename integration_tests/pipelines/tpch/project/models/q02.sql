{{ config(unique_key=['p_partkey', 's_name']) }}
-- without LIMIT; q02_top has the first hundred
select s_acctbal, s_name, n_name, p_partkey, p_mfgr, s_address, s_phone, s_comment
from {{ source('raw', 'part') }}, {{ source('raw', 'supplier') }}, {{ source('raw', 'partsupp') }}, {{ source('raw', 'nation') }}, {{ source('raw', 'region') }}
where p_partkey = ps_partkey and s_suppkey = ps_suppkey and p_size = 15 and p_type like '%BRASS'
  and s_nationkey = n_nationkey and n_regionkey = r_regionkey and r_name = 'EUROPE'
  and ps_supplycost = (
    select min(ps_supplycost)
    from {{ source('raw', 'partsupp') }}, {{ source('raw', 'supplier') }}, {{ source('raw', 'nation') }}, {{ source('raw', 'region') }}
    where p_partkey = ps_partkey and s_suppkey = ps_suppkey and s_nationkey = n_nationkey
      and n_regionkey = r_regionkey and r_name = 'EUROPE'
  )
