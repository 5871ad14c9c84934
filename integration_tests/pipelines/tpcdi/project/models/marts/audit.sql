{{ config(unique_key='check_name') }}
-- counts, sums and dates that connect; `wrong` is the number of rows that break a rule
select 'customers' as check_name, count(*) as found, 0 as wrong from {{ ref('dim_customer') }}
union all
select 'current customers', count(distinct customer_id),
    count(*) - count(distinct customer_id) from {{ ref('dim_customer') }} where is_current
union all
select 'customer versions overlap', 0, count(*)
from {{ ref('dim_customer') }} a join {{ ref('dim_customer') }} b
  on a.customer_id = b.customer_id and a.effective_date < b.effective_date and a.end_date > b.effective_date
union all
select 'account versions end before they begin', count(*), sum(case when end_date <= effective_date then 1 else 0 end)
from {{ ref('dim_account') }}
union all
select 'accounts without customer', 0, count(*)
from {{ ref('dim_account') }} a
where not exists (select 1 from {{ ref('dim_customer') }} c where c.sk_customer_id = a.sk_customer_id)
union all
select 'trades', count(*), 0 from {{ ref('dim_trade') }}
union all
select 'trades lost', 0, (select count(*) from {{ source('raw', 'trade') }}) - (select count(*) from {{ ref('dim_trade') }})
union all
select 'pieces held', sum(current_holding), 0 from {{ ref('fact_holdings') }}
union all
select 'watches', count(sk_date_placed), count(sk_date_removed) from {{ ref('fact_watches') }}
union all
select 'market days', count(*), sum(case when day_high > fifty_two_week_high then 1 else 0 end)
from {{ ref('fact_market_history') }}
union all
select 'batches', count(*), max(batch_id) - count(*) from {{ source('raw', 'batch_date') }}
