"""Rows on their way in: conformed, routed to buckets, compared; which stored rows are meant."""
