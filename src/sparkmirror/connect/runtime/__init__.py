"""Who runs what on this worker: the herder, one WorkerConnector per connector, and their tasks.

May import: all other rooms of connect but dedicated and legacy.
Start reading: herder_loop, herder, worker_connector.
"""
