{{ config(unique_key='s_name') }}
select s_name, s_address
from {{ source('raw', 'supplier') }}, {{ source('raw', 'nation') }}
where s_suppkey in (
    select ps_suppkey
    from {{ source('raw', 'partsupp') }}
    where ps_partkey in (select p_partkey from {{ source('raw', 'part') }} where p_name like 'forest%')
      and ps_availqty > (
        select 0.5 * sum(l_quantity)
        from {{ source('raw', 'lineitem') }}
        where l_partkey = ps_partkey and l_suppkey = ps_suppkey
          and l_shipdate >= date '1994-01-01' and l_shipdate < date '1995-01-01'
      )
  )
  and s_nationkey = n_nationkey and n_name = 'CANADA'
