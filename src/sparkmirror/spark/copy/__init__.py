"""The copy task on an executor: fetch, rewrite in place, produce, one thread.

May import: spark.offsets, spark.link, wire, batches, mirror.
Start reading: copy_task, copy_loop.
"""
