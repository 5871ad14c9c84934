{{ config(unique_key='place') }}
select *
from (select *, row_number() over (order by revenue desc, o_orderdate, l_orderkey) as place from {{ ref('q03') }}) ordered
where place <= 10
