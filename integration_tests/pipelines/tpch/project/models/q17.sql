{{ config(unique_key='id') }}
select 1 as id, sum(l_extendedprice) / 7.0 as avg_yearly
from {{ source('raw', 'lineitem') }} outside, {{ source('raw', 'part') }}
where p_partkey = l_partkey and p_brand = 'Brand#23' and p_container = 'MED BOX'
  and l_quantity < (
    select {% if target.type == 'duckdb' %}sum(l_quantity) / 5 / count(*){% else %}0.2 * avg(l_quantity){% endif %}
    from {{ source('raw', 'lineitem') }} inside where inside.l_partkey = p_partkey
  )
