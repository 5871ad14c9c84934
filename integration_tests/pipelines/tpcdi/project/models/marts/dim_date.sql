{{ config(unique_key='sk_date_id') }}
select sk_date_id, date_value, calendar_year, calendar_qtr, calendar_month, day_of_week, is_holiday from {{ source('raw', 'calendar') }}
