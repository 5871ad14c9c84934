"""Servers for development, on loopback: a Kafka broker, and Kafka Connect with Debezium."""
