"""The data plane on Spark: the session, one runner per task, the copy itself, the control link.

May import: wire, mirror, config, batches; pyspark is imported only here.
Start reading: task_runner, copy.copy_loop.
"""
