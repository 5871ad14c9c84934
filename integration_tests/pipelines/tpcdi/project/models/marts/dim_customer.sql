{{ config(unique_key=['customer_id', 'effective_date'], affected_key='customer_id') }}
select
    v.customer_id * 10000 + v.version as sk_customer_id,
    v.customer_id, v.tax_id, v.status, v.last_name, v.first_name, v.middle_name,
    case when upper(v.gender) in ('M', 'F') then upper(v.gender) else 'U' end as gender,
    v.tier, v.dob, v.address_line1, v.address_line2, v.postal_code, v.city, v.state_prov, v.country, v.phone, v.email,
    n.tx_name as national_tax_rate_desc, n.tx_rate as national_tax_rate,
    l.tx_name as local_tax_rate_desc, l.tx_rate as local_tax_rate,
    p.agency_id, p.credit_rating, p.net_worth,
    v.batch_id, v.effective_date, v.end_date, v.end_date = date '9999-12-31' as is_current
from {{ ref('customer_versions') }} v
left join {{ ref('tax_rate') }} n on n.tx_id = v.nat_tx_id
left join {{ ref('tax_rate') }} l on l.tx_id = v.lcl_tx_id
left join {{ source('raw', 'prospect') }} p
  on v.end_date = date '9999-12-31' and upper(p.first_name) = upper(v.first_name)
  and upper(p.last_name) = upper(v.last_name) and upper(p.address_line1) = upper(v.address_line1)
  and upper(p.postal_code) = upper(v.postal_code)
