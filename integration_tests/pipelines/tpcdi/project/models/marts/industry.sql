{{ config(unique_key='in_id') }}
select in_id, in_name, in_sc_id from {{ source('raw', 'industry') }}
