"""Take out what gives a label away: notes of the collectors that no author of a skill would write."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Final

from tests.corpus.samples import text_files

# Marks of collections. They are narrow, so that a lesson about malware keeps its text; see also Source.markers.
_MARKS: Final = (
    r"BENCHMARK_TEST_ONLY|SKILLFORTIFYBENCH|_skillfortifybench|corpus-(?:label|source|repo|url|round|format)\b"
    r"|^[\W_]*(?:label|ground.?truth|expected[ _-](?:verdict|label|result|detections?|severity|block))\W*[:=]"
    r"|\bmalicious (?:example|sample|fixture)\b|intentionally malicious|\bneutralized\b|simulated malicious"
)
# A comment at the end of a line; the space before keeps addresses and colours.
_TRAILING: Final = re.compile(r"^(?P<code>.*\S.*?)\s+(?:#|//|<!--)\s?(?P<comment>.*)$")


def without_markers(files: Mapping[str, bytes], markers: str = "") -> dict[str, bytes]:
    """Return the files without the lines, or the comments at the end of a line, that give a label away.

    ``markers`` is the pattern of the source, see ``Source``.
    """
    marker = re.compile(f"{_MARKS}|{markers}" if markers else _MARKS, re.IGNORECASE | re.MULTILINE)
    cleaned = dict(files)
    for path, text in text_files(files):
        if marker.search(text):
            lines = (_cleaned(line, marker) for line in text.splitlines(keepends=True))
            cleaned[path] = "".join(line for line in lines if line is not None).encode()
    return cleaned


def _cleaned(line: str, marker: re.Pattern[str]) -> str | None:
    """Return a line without its marker: as it is, without its comment, or ``None`` where nothing else is in it."""
    if not marker.search(line):
        return line
    end = line[len(line.rstrip("\r\n")) :]
    trailing = _TRAILING.match(line.rstrip("\r\n"))
    if trailing is not None and not marker.search(trailing["code"]):
        return trailing["code"] + end
    # A docstring of one line keeps its quotes, or what follows would be another program.
    docstring = re.match(r"^(\s*)(\"\"\"|''').*\2\s*$", line)
    return f'{docstring[1]}"""Do the work."""{end}' if docstring else None
