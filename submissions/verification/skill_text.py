"""Turn the bytes of a SKILL.md into text."""

from __future__ import annotations

from submissions.verification.findings import Finding
from submissions.verification.format_findings import problem

_UTF8_BOM = b"\xef\xbb\xbf"
_BOMS = (
    (b"\xff\xfe\x00\x00", "UTF-32"),
    (b"\x00\x00\xfe\xff", "UTF-32"),
    (b"\xff\xfe", "UTF-16"),
    (b"\xfe\xff", "UTF-16"),
)


class FrontmatterError(Exception):
    """Raised inside this package for the first problem that stops the reader; ``finding`` describes it."""

    def __init__(self, finding: Finding) -> None:
        """Keep the finding."""
        super().__init__(finding.title)
        self.finding = finding


def decode_skill_md(data: bytes, *, file: str) -> str:
    """Return the text of a SKILL.md without byte-order mark and with LF line ends; raises FrontmatterError.

    ``file`` is the path that findings show.
    """
    if not data.strip():
        raise FrontmatterError(
            problem("empty", "SKILL.md is empty", file=file, advice="Write a frontmatter and instructions into it.")
        )
    start = len(_UTF8_BOM) if data.startswith(_UTF8_BOM) else 0
    data = data[start:]
    encoding = next((name for mark, name in _BOMS if data.startswith(mark)), None)
    if encoding is not None:
        raise FrontmatterError(
            problem("encoding", f"SKILL.md is {encoding}, not UTF-8", file=file, advice="Save the file as UTF-8.")
        )
    if b"\0" in data:
        offset = data.index(b"\0")
        raise FrontmatterError(
            problem(
                "binary",
                f"SKILL.md is not a text file: a zero byte at offset {start + offset}",
                file=file,
                line=data.count(b"\n", 0, offset) + 1,
                advice="SKILL.md must be plain UTF-8 text; put binary files beside it.",
            )
        )
    try:
        text = data.decode("utf-8")
    except UnicodeDecodeError as error:
        raise FrontmatterError(
            problem(
                "encoding",
                f"SKILL.md is not UTF-8: byte 0x{data[error.start]:02x} at offset {start + error.start}",
                file=file,
                line=data.count(b"\n", 0, error.start) + 1,
                advice="Save the file as UTF-8.",
            )
        ) from None
    return text.replace("\r\n", "\n").replace("\r", "\n")
