-- Every flight as the airline's PostgreSQL has it: each run applies what was committed there since the last one.
{{ config(materialized='streaming', unique_key='flight_id') }}
select flight_id, carrier, origin, dest, scheduled_departure, status, dep_delay, arr_delay, _row_kind, _snapshot_id
from {{ stream(source('airline', 'flights')) }}
