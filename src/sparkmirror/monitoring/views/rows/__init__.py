"""The rows of all views, as REST sends them and the page, `top` and the other commands show them.

May import: nothing of monitoring. Times are milliseconds since 1970 in UTC, durations seconds. What
is None has its reason under its name, in `unknown` (it could not be had) or in `not_applicable`
(there is none): 0 always means that something was measured. Start reading: common, flow_rows.
"""
