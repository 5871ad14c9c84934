{{ config(unique_key='tt_id') }}
select tt_id, tt_name, tt_is_sell, tt_is_mrkt from {{ source('raw', 'trade_type') }}
