-- Names and types as the rest of the project wants them; one row per event, nothing left out.
select
    flight_id,
    flight_date,
    scheduled_departure,
    carrier,
    flight_number,
    tailnum,
    origin,
    dest,
    distance,
    dep_delay,
    arr_delay,
    air_time,
    status,
    op,
    event_time,
    feed_day
from {{ source('airline', 'flight_events') }}
