{{ config(unique_key='place') }}
select *
from (select *, row_number() over (order by o_totalprice desc, o_orderdate, o_orderkey) as place from {{ ref('q18') }}) ordered
where place <= 100
