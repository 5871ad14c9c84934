-- Delays by airport and hour; only those that a changed flight belongs to are computed anew. Its changelog is the topic.
{{ config(
    materialized='incremental',
    incremental_strategy='changed_keys',
    unique_key=['origin', 'hour'],
    affected_by={'flights': ['origin', "date_trunc('hour', scheduled_departure)"]},
    log_system='kafka',
    log_consistency='transactional',
    kafka_topic='airport_delays'
) }}
select
    origin,
    date_trunc('hour', scheduled_departure) as hour,
    count(*) as flights,
    count(dep_delay) as departed,
    coalesce(sum(dep_delay), 0) as delay_minutes,
    percentile(dep_delay, 0.5) as median_delay
from {{ ref('flights') }}
group by origin, date_trunc('hour', scheduled_departure)
