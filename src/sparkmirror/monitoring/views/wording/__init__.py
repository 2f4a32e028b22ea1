"""Numbers and times in words, remedies taken from messages, and what a request selects.

May import: rows.
Start reading: words.
"""
