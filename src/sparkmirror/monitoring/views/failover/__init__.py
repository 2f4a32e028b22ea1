"""The question of the failover view: could one switch now, and what would it cost?

May import: the other views, and what is below.
Start reading: failover_view, then failover_evidence.
"""
