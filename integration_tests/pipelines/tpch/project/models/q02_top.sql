{{ config(unique_key='place') }}
select *
from (select *, row_number() over (order by s_acctbal desc, n_name, s_name, p_partkey) as place from {{ ref('q02') }}) ordered
where place <= 100
