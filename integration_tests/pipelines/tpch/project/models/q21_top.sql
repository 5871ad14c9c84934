{{ config(unique_key='place') }}
select *
from (select *, row_number() over (order by numwait desc, s_name) as place from {{ ref('q21') }}) ordered
where place <= 100
