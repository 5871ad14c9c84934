{{ config(unique_key=['message_source', 'message_key']) }}
select 'DimCustomer' as message_source, cast(customer_id as string) || '/' || cast(effective_date as string) as message_key,
    'invalid tier' as message_text, batch_id
from {{ ref('dim_customer') }}
where tier is null or tier not in (1, 2, 3)
union all
select 'DimTrade', cast(trade_id as string), 'invalid commission', 0
from {{ ref('dim_trade') }}
where commission is not null and commission > trade_price * quantity
union all
select 'DimTrade fee', cast(trade_id as string), 'invalid fee', 0
from {{ ref('dim_trade') }}
where fee is not null and fee > trade_price * quantity
union all
select 'FactMarketHistory', symbol || '/' || cast(date_value as string), 'no earnings for company', 0
from {{ ref('fact_market_history') }}
where pe_ratio is null
