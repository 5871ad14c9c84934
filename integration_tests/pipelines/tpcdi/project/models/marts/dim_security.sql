{{ config(unique_key=['symbol', 'effective_date'], affected_key='symbol') }}
with versions as (
    select *,
        row_number() over (partition by symbol order by effective_date) as version,
        coalesce(lead(effective_date) over (partition by symbol order by effective_date), date '9999-12-31') as end_date
    from {{ ref('finwire_securities') }}
)
select
    v.symbol, v.version, v.issue_type, s.st_name as status, v.name, v.exchange_id, c.sk_company_id, c.company_id,
    v.shares_outstanding, v.first_trade_date, v.dividend, v.effective_date, v.end_date,
    v.end_date = date '9999-12-31' as is_current
from versions v
join {{ ref('status_type') }} s on s.st_id = v.status_id
left join {{ ref('company_lookup') }} c
  on c.company_ref = v.company_ref and v.effective_date >= c.effective_date and v.effective_date < c.end_date
