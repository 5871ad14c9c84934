select
    ca_id as account_id, action_date as effective_date, 1 as batch_id, c_id as customer_id, ca_b_id as broker_id,
    ca_name as account_desc, ca_tax_st as tax_status,
    case when action_type = 'CLOSEACCT' then 'INACTIVE' else 'ACTIVE' end as status
from {{ source('raw', 'customer_mgmt') }}
where action_type in ('NEW', 'ADDACCT', 'UPDACCT', 'CLOSEACCT')
union all
select a.ca_id, b.batch_date, a.batch_id, a.ca_c_id, a.ca_b_id, a.ca_name, a.ca_tax_st, s.st_name
from {{ source('raw', 'account') }} a
join {{ source('raw', 'batch_date') }} b on b.batch_id = a.batch_id
join {{ source('raw', 'status_type') }} s on s.st_id = a.ca_st_id
