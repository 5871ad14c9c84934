{{ config(unique_key='tx_id') }}
select tx_id, tx_name, tx_rate from {{ source('raw', 'tax_rate') }}
