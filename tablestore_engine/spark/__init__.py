"""Many machines: sessions, names as native views, SQL routed to our tables, distributed writes."""
