"""Readers that follow a table: where they begin, what they get, how far they are.

Path       api/table.py asks open_stream.py for a start: a stored position (position.py), a consumer's progress
           (consumer_progress.py) or the rule of a mode (startup_mode.py) → table_stream.py waits, cuts batches and
           moves the position → snapshot_enumerator.py gives the next snapshot, store/changelog.py reads its changes,
           store/difference.py those of an overwrite without changelog.
Log        log_changes.py asks the port log/followed_log.py; log_boundaries.py says where a reader may start, be and
           end; normalize.py computes changes from messages, the rows in key_state.py and the table.
"""
