{{ config(
    materialized='tablestore',
    primary_key=['order_id'],
    sequence_field='updated_at',
    delete_when="status = 'cancelled'"
) }}
select order_id, customer, amount, status, updated_at, day
from {{ ref('stg_orders') }}
