"""Why a topic or a group is mirrored, or not: every rule in order, with the code of the mirror.

May import: the rules beside it in mirror, config.
Start reading: explanation, topic_rules.
"""
