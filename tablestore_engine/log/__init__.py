"""Kafka: outbox, publish, read back; and a development broker. The only place that imports confluent_kafka."""
