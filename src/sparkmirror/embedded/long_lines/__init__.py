"""A line to a broker with delay, windows and faults, for tests and the benchmark.

May import: embedded.
Start reading: long_line.
"""
