{{ config(unique_key='place') }}
select *
from (select *, row_number() over (order by revenue desc, c_custkey) as place from {{ ref('q10') }}) ordered
where place <= 20
