{{ config(unique_key='agency_id') }}
-- the day on which each prospect was in the list last: all of them change each day
select p.agency_id, b.record_date
from {{ source('raw', 'prospect') }} p
cross join (select max(batch_date) as record_date from {{ source('raw', 'batch_date') }}) b
