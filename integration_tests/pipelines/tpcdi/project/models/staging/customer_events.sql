-- history: actions that name changed columns alone; later days: change data capture with all columns
select
    c_id as customer_id, action_date as effective_date, 1 as batch_id,
    case when action_type = 'INACT' then 'INACTIVE' else 'ACTIVE' end as status,
    tax_id, last_name, first_name, middle_name, gender, tier, dob, address_line1, address_line2, postal_code, city, state_prov, country, phone, email, lcl_tx_id, nat_tx_id
from {{ source('raw', 'customer_mgmt') }}
where action_type in ('NEW', 'UPDCUST', 'INACT')
union all
select c_id as customer_id, b.batch_date as effective_date, c.batch_id, s.st_name as status,
    tax_id, last_name, first_name, middle_name, gender, tier, dob, address_line1, address_line2, postal_code, city, state_prov, country, phone, email, lcl_tx_id, nat_tx_id
from {{ source('raw', 'customer') }} c
join {{ source('raw', 'batch_date') }} b on b.batch_id = c.batch_id
join {{ source('raw', 'status_type') }} s on s.st_id = c.st_id
