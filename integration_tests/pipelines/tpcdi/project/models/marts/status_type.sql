{{ config(unique_key='st_id') }}
select st_id, st_name from {{ source('raw', 'status_type') }}
