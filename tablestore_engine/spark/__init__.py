"""Many machines: sessions, names as native views, SQL routed to our tables, distributed writes.

Stateful   api/stateful_streams.py takes the state that the newest snapshot names → stateful_query.py lets Spark stream
           one range → rows in files and the new state in one file → a write whose commit names that state.
Session    session.py asks resident_session.py before it starts a JVM; resident_main.py is the program that keeps one.
Cluster    ship_package.py sends the package; worker_check.py compares the workers' Python, and each worker process does
           again (worker_versions.py); core_watch.py reports a job that waits for executors; task_attempts.py keeps
           work out of tasks that Spark may run twice at once.
"""
