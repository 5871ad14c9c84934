{{ config(materialized='view') }}
select order_id, customer, amount, status, updated_at, cast(updated_at as date) as day
from {{ ref('raw_orders') }}
