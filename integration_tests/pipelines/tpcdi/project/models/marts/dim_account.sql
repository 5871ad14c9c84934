{{ config(unique_key=['account_id', 'effective_date'], affected_key='account_id') }}
-- a new version of the customer is a new version of each account
with overlapping as (
    select
        a.account_id, a.broker_id, a.account_desc, a.tax_status, c.sk_customer_id, c.customer_id,
        case when c.status = 'INACTIVE' then 'INACTIVE' else a.status end as status,
        greatest(a.effective_date, c.effective_date) as effective_date,
        least(a.end_date, c.end_date) as end_date
    from {{ ref('account_versions') }} a
    join {{ ref('dim_customer') }} c
      on c.customer_id = a.customer_id and a.effective_date < c.end_date and c.effective_date < a.end_date
)
select
    o.account_id * 10000 + row_number() over (partition by o.account_id order by o.effective_date) as sk_account_id,
    o.account_id, b.broker_id, o.sk_customer_id, o.customer_id, o.status, o.account_desc, o.tax_status,
    o.effective_date, o.end_date, o.end_date = date '9999-12-31' as is_current
from overlapping o
left join {{ ref('dim_broker') }} b on b.broker_id = o.broker_id
