{{ config(unique_key='sk_time_id') }}
select sk_time_id, hour_id, minute_id, is_market_hours, is_office_hours from {{ source('raw', 'clock') }}
