"""Who runs what on this worker: the herder, one WorkerConnector per connector, dedicated mode.

May import: all other rooms of connect but legacy.
Start reading: herder_loop, herder, worker_connector.
"""
