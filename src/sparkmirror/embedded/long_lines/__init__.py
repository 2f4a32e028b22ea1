"""A simulated long line to a broker, with delay, windows and faults, for tests and benchmark.

May import: embedded.
Start reading: long_line.
"""
