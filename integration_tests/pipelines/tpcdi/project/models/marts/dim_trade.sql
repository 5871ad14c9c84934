{{ config(unique_key='trade_id') }}
with moments as (
    select
        h.th_t_id as trade_id,
        min(case when (h.th_st_id = 'SBMT' and t.t_tt_id in ('TMB', 'TMS')) or h.th_st_id = 'PNDG'
            then h.th_dts end) as created_at,
        max(case when h.th_st_id in ('CMPT', 'CNCL') then h.th_dts end) as closed_at
    from {{ source('raw', 'trade_history') }} h
    join {{ source('raw', 'trade') }} t on t.t_id = h.th_t_id
    group by h.th_t_id
)
select
    t.t_id as trade_id, b.broker_id, m.created_at, m.closed_at, s.st_name as status, y.tt_name as type,
    t.t_is_cash as cash_flag, x.symbol, x.version as security_version, x.company_id, x.sk_company_id,
    t.t_qty as quantity, t.t_bid_price as bid_price, a.sk_customer_id, a.sk_account_id, a.account_id,
    t.t_exec_name as executed_by, t.t_trade_price as trade_price, t.t_chrg as fee, t.t_comm as commission,
    t.t_tax as tax
from {{ source('raw', 'trade') }} t
join moments m on m.trade_id = t.t_id
join {{ ref('status_type') }} s on s.st_id = t.t_st_id
join {{ ref('trade_type') }} y on y.tt_id = t.t_tt_id
join {{ ref('dim_security') }} x
  on x.symbol = t.t_s_symb and cast(m.created_at as date) >= x.effective_date
  and cast(m.created_at as date) < x.end_date
join {{ ref('dim_account') }} a
  on a.account_id = t.t_ca_id and cast(m.created_at as date) >= a.effective_date
  and cast(m.created_at as date) < a.end_date
left join {{ ref('dim_broker') }} b on b.broker_id = a.broker_id
