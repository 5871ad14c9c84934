{{ config(unique_key=['account_id', 'date_value'], affected_key='account_id') }}
with of_a_day as (
    select ct_ca_id as account_id, cast(ct_dts as date) as date_value, sum(ct_amt) as amount
    from {{ source('raw', 'cash_transaction') }}
    group by ct_ca_id, cast(ct_dts as date)
)
select
    d.account_id, d.date_value, t.sk_date_id, a.sk_account_id, a.sk_customer_id,
    sum(d.amount) over (partition by d.account_id order by d.date_value) as cash
from of_a_day d
join {{ ref('dim_date') }} t on t.date_value = d.date_value
join {{ ref('dim_account') }} a
  on a.account_id = d.account_id and d.date_value >= a.effective_date and d.date_value < a.end_date
