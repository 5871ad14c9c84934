-- The state of every flight: the newest event wins, a cancelled flight is deleted. Its changelog is the Kafka topic.
{{ config(
    materialized='tablestore',
    primary_key=['flight_id'],
    buckets=2,
    sequence_field='event_time',
    delete_when="op = 'd'",
    log_system='kafka',
    log_consistency='transactional',
    kafka_topic='flights'
) }}
select * from {{ ref('stg_flight_events') }}
{% if is_incremental() %}
where feed_day > (select coalesce(max(feed_day), 0) from {{ this }})
{% endif %}
