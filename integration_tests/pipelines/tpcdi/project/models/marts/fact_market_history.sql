{{ config(unique_key=['symbol', 'date_value'], affected_key='symbol') }}
-- the first day of the highest price is in the last eight digits: 99999999 less its number, so that it is the largest
with numbered as (
    select m.*, d.sk_date_id, d.calendar_year, d.calendar_qtr
    from {{ source('raw', 'daily_market') }} m
    join {{ ref('dim_date') }} d on d.date_value = m.dm_date
),
of_year as (
    select
        dm_s_symb as symbol, dm_date as date_value, sk_date_id, calendar_year, calendar_qtr, dm_close, dm_high, dm_low,
        dm_vol,
        max(cast(dm_high * 100 as bigint) * 100000000 + 99999999 - sk_date_id) over weeks as highest,
        min(cast(dm_low * 100 as bigint) * 100000000 + sk_date_id) over weeks as lowest
    from numbered
    window weeks as (
        partition by dm_s_symb order by dm_date range between interval '364' day preceding and current row
    )
)
select
    y.symbol, y.date_value, y.sk_date_id, s.version as security_version, s.sk_company_id,
    y.dm_close as close_price, y.dm_high as day_high, y.dm_low as day_low, y.dm_vol as volume,
    cast((y.highest - y.highest % 100000000) / 10000000000 as decimal(10, 2)) as fifty_two_week_high,
    99999999 - y.highest % 100000000 as sk_fifty_two_week_high_date,
    cast((y.lowest - y.lowest % 100000000) / 10000000000 as decimal(10, 2)) as fifty_two_week_low,
    y.lowest % 100000000 as sk_fifty_two_week_low_date,
    case when e.eps_of_year <> 0 then y.dm_close / e.eps_of_year end as pe_ratio,
    s.dividend / y.dm_close * 100 as yield
from of_year y
join {{ ref('dim_security') }} s
  on s.symbol = y.symbol and y.date_value >= s.effective_date and y.date_value < s.end_date
left join {{ ref('company_eps') }} e
  on e.company_id = s.company_id and e.fi_year = y.calendar_year and e.fi_qtr = y.calendar_qtr
