{{ config(unique_key=['trade_id', 'current_trade_id']) }}
select
    h.hh_h_t_id as trade_id, h.hh_t_id as current_trade_id, t.sk_customer_id, t.sk_account_id, t.symbol,
    t.sk_company_id, d.sk_date_id, t.trade_price as current_price, h.hh_after_qty as current_holding
from {{ source('raw', 'holding_history') }} h
join {{ ref('dim_trade') }} t on t.trade_id = h.hh_t_id
left join {{ ref('dim_date') }} d on d.date_value = cast(t.closed_at as date)
