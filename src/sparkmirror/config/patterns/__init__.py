"""Java regular expressions in Python, matched in linear time.

May import: errors.
Start reading: java_regex.
"""
