"""Jetty's HTML page for a URI that cannot be used.

Runs on: worker. Pure.
"""

from __future__ import annotations

from html import escape

from sparkmirror.rest.exception_mapper import BadUri
from sparkmirror.rest.request import RestResponse

_PAGE = """\
<html>
<head>
<meta http-equiv="Content-Type" content="text/html;charset=ISO-8859-1"/>
<title>Error 400 {reason}</title>
</head>
<body>
<h2>HTTP ERROR 400 {reason}</h2>
<table>
<tr><th>URI:</th><td>{uri}</td></tr>
<tr><th>STATUS:</th><td>400</td></tr>
<tr><th>MESSAGE:</th><td>{reason}</td></tr>
</table>

</body>
</html>
"""


def bad_uri_page(error: BadUri) -> RestResponse:
    return RestResponse(
        400,
        raw=_PAGE.format(reason=error.reason, uri=escape(error.uri)).encode("latin-1"),
        content_type="text/html;charset=iso-8859-1",
        headers={
            "Cache-Control": "must-revalidate,no-cache,no-store",
            "Connection": "close",
        },
    )
