"""How log lines look: their beginning, text or JSON, limited repeats, and what they mean.

May import: config, and what is below.
Start reading: places, log_handler, messages.
"""
