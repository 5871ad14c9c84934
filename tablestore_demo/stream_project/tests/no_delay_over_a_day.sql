-- Nobody waits longer than a day: a larger number is a broken unit, not a broken aircraft.
select flight_id, dep_delay from {{ ref('flights') }} where dep_delay > 1440 or arr_delay > 1440
