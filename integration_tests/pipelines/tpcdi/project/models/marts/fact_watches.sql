{{ config(unique_key=['customer_id', 'symbol']) }}
with watches as (
    select
        w_c_id as customer_id, w_s_symb as symbol,
        min(case when w_action = 'ACTV' then cast(w_dts as date) end) as placed_on,
        max(case when w_action = 'CNCL' then cast(w_dts as date) end) as removed_on
    from {{ source('raw', 'watch_history') }}
    group by w_c_id, w_s_symb
)
select
    w.customer_id, c.sk_customer_id, w.symbol, s.version as security_version, p.sk_date_id as sk_date_placed,
    r.sk_date_id as sk_date_removed
from watches w
join {{ ref('dim_customer') }} c
  on c.customer_id = w.customer_id and w.placed_on >= c.effective_date and w.placed_on < c.end_date
join {{ ref('dim_security') }} s
  on s.symbol = w.symbol and w.placed_on >= s.effective_date and w.placed_on < s.end_date
join {{ ref('dim_date') }} p on p.date_value = w.placed_on
left join {{ ref('dim_date') }} r on r.date_value = w.removed_on
