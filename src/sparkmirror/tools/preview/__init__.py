"""`sparkmirror plan` and `explain`: what the mirror would do, and why; nothing is written.

May import: tools.check, tools.deploy, connect, wire, mirror, config.
Start reading: planning, explaining.
"""
