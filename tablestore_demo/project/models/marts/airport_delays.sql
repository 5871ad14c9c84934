-- Delays per airport and day, of the days that the newest events touched.
{{ config(materialized='tablestore', primary_key=['airport', 'flight_date'], log_system='kafka', kafka_topic='airport_delays') }}
select
    flights.origin as airport,
    airports.name as airport_name,
    flights.flight_date,
    count(*) as flights_departed,
    cast(avg(flights.dep_delay) as decimal(8, 2)) as average_delay_minutes,
    max(flights.dep_delay) as longest_delay_minutes
from {{ ref('flights') }} as flights
left join {{ ref('airports') }} as airports on flights.origin = airports.faa
where flights.dep_delay is not null
{% if is_incremental() %}
    and flights.flight_date >= (select coalesce(max(flight_date), date '1900-01-01') from {{ this }})
{% endif %}
group by flights.origin, airports.name, flights.flight_date
