{{ config(unique_key='ps_partkey') }}
select ps_partkey, sum(ps_supplycost * ps_availqty) as value
from {{ source('raw', 'partsupp') }}, {{ source('raw', 'supplier') }}, {{ source('raw', 'nation') }}
where ps_suppkey = s_suppkey and s_nationkey = n_nationkey and n_name = 'GERMANY'
group by ps_partkey
having sum(ps_supplycost * ps_availqty) > (
    select sum(ps_supplycost * ps_availqty) * {{ var('q11_fraction') }}
    from {{ source('raw', 'partsupp') }}, {{ source('raw', 'supplier') }}, {{ source('raw', 'nation') }}
    where ps_suppkey = s_suppkey and s_nationkey = n_nationkey and n_name = 'GERMANY'
)
