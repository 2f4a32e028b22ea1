"""How far each partition and each flow is behind: in records, bytes and seconds, until loss begins.

May import: connect, and what is below.
Start reading: partition_lag, lag_model.
"""
