"""The broker's side of AWS_MSK_IAM, written from the specification and from nothing of ours."""

from __future__ import annotations

import calendar
import hashlib
import hmac
import json
import time
import urllib.parse

from tests.wire.fake_login import Refused


class Msk:
    """Knows secret keys by access keys, and checks signatures with them."""

    def __init__(self, keys: dict[str, str]) -> None:
        self._keys = keys
        self.seen: list[dict[str, str]] = []

    def judge(self, message: bytes) -> bytes:
        fields = json.loads(message)
        self.seen.append(fields)
        access_key, day, region, service, end = fields["x-amz-credential"].split("/")
        secret = self._keys.get(access_key)
        stamp = time.strptime(fields["x-amz-date"] + " UTC", "%Y%m%dT%H%M%SZ %Z")
        if secret is None or (service, end) != ("kafka-cluster", "aws4_request"):
            raise Refused("Access denied")
        if fields["x-amz-date"][:8] != day or abs(time.time() - _seconds(stamp)) > 900:
            raise Refused("Signature expired")
        names = {
            "action": "Action", "x-amz-algorithm": "X-Amz-Algorithm",
            "x-amz-credential": "X-Amz-Credential", "x-amz-date": "X-Amz-Date",
            "x-amz-expires": "X-Amz-Expires", "x-amz-security-token": "X-Amz-Security-Token",
            "x-amz-signedheaders": "X-Amz-SignedHeaders",
        }  # fmt: skip
        pairs = sorted((names[key], value) for key, value in fields.items() if key in names)
        query = urllib.parse.urlencode(pairs, quote_via=urllib.parse.quote, safe="-_.~")
        empty = hashlib.sha256(b"").hexdigest()
        request = f"GET\n/\n{query}\nhost:{fields['host']}\n\nhost\n{empty}"
        digest = hashlib.sha256(request.encode()).hexdigest()
        scope = f"{day}/{region}/{service}/{end}"
        to_sign = f"AWS4-HMAC-SHA256\n{fields['x-amz-date']}\n{scope}\n{digest}"
        key = f"AWS4{secret}".encode()
        for part in (day, region, service, end, to_sign):
            key = hmac.new(key, part.encode(), hashlib.sha256).digest()
        if key.hex() != fields["x-amz-signature"]:
            raise Refused("Access denied")
        return b'{"version":"2020_10_22","request-id":"0"}'


def _seconds(stamp: time.struct_time) -> float:
    return float(calendar.timegm(stamp))
