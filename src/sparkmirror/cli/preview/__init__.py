"""Commands that say what a file means before anything runs: validate, explain, plan.

May import: cli.tables, tools, config.
Start reading: plan.
"""
