"""Find signs in what documents hold: macros, relations to other places, fields that start programs, scripts."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Final

from submissions.verification.engine.decoding import is_telling
from submissions.verification.engine.parts import Kind, Part, Sign, sign

_AUTO: Final = re.compile(
    r"\b(?:Sub|Function)\s+(?:Auto_?(?:Open|Exec|Exit|Close|New)|Document_(?:Open|New|Close)|Workbook_(?:Open|Activate"
    r"|BeforeClose|BeforeSave|SheetActivate)|\w{1,60}_(?:Layout|Painted|GotFocus|MouseMove|OnLoad|Resize))\b",
    re.IGNORECASE,
)
_RUNS: Final = re.compile(
    r"\bShell\s*[(\"]|\bShell\$?\s+\w|WScript\.Shell|ShellExecute|Shell\.Application|URLDownloadToFile|XMLHTTP"
    r"|WinHttp|ADODB\.Stream|\bpowershell\b|\bcmd(?:\.exe)?\s+/c\b|\bmshta\b|\bcertutil\b|Win32_Process"
    r"|CreateProcess|CreateThread|VirtualAlloc|CallByName|\bMacScript\b|AppleScriptTask|\bcurl\b|\bLib\s+\"urlmon",
    re.IGNORECASE,
)
_CHARACTER: Final = re.compile(r"\bChrW?\$?\s{0,3}\(\s{0,3}(&H[0-9A-F]{1,4}|\d{1,5})&?\s{0,3}\)", re.IGNORECASE)
_JOINED: Final = re.compile(r"\"\s{0,20}[&+]\s{0,20}(?:_\s{0,20})?\"")
_TURNED: Final = re.compile(r"\bStrReverse\s{0,3}\(\s{0,3}\"([^\"\n]{2,2000})\"\s{0,3}\)", re.IGNORECASE)
_STRING: Final = re.compile(r"\"((?:[^\"\n]|\"\"){10,8000})\"")
_RELATION: Final = re.compile(r"<(?:\w{1,20}:)?Relationship\b([^<>]{1,4000})>")
_ATTRIBUTE: Final = re.compile(r"(\w{1,20})\s{0,5}=\s{0,5}[\"']([^\"'<>]{0,2000})[\"']")
_REMOTE: Final = re.compile(r"(?:https?|ftps?|mhtml|ms-\w+|javascript|vbscript|data):", re.IGNORECASE)
_FAR: Final = re.compile(r"(?:file:/{2,5})?(?:\\\\|//)[\w.-]", re.IGNORECASE)
_LOADED: Final = frozenset({"attachedtemplate", "oleobject", "frame", "subdocument", "control", "package", "afchunk"})
_PROGRAMS: Final = r"(?:cmd|powershell|pwsh|mshta|rundll32|regsvr32|wscript|cscript|msiexec|certutil|bash|sh)(?:\.exe)?"
_FIELD: Final = re.compile(r"\bDDE(?:AUTO)?\b\s{0,20}\S", re.IGNORECASE)
_CELL: Final = re.compile(
    rf"<(?:\w:)?f\b[^<>]{{0,200}}>[^<>]{{0,500}}\b{_PROGRAMS}\s{{0,3}}\||dde(?:Service|-application)=\"[^\"]{{0,200}}\b{_PROGRAMS}\"",
    re.IGNORECASE,
)
_ODF_LOADS: Final = re.compile(
    r"<(?:draw:object-ole|draw:object|draw:plugin|draw:applet|meta:template|text:section-source)\b[^<>]{0,1000}"
    r"xlink:href=\"((?:https?|ftp):[^\"<>]{1,1000})\"",
    re.IGNORECASE,
)
_PDF_ACTS: Final = re.compile(
    r"exportDataObject\s*\([^)]{0,400}nLaunch\s*:\s*[12]|app\.launchURL|\bsubmitForm\s*\(|app\.execMenuItem"
    r"|\bunescape\s*\(|\bSOAP\.|\beval\s*\(",
    re.IGNORECASE,
)
_MOST: Final = 50


def macro_text(text: str) -> str:
    """Return the text of a macro with its lines, letters and constants put together."""
    text = re.sub(r"[ \t]_\n", " ", text)

    def letter(match: re.Match[str]) -> str:
        code = int(match[1][2:], 16) if match[1].startswith("&") else int(match[1])
        return '"' + (chr(code) if 32 <= code < 127 and code != ord('"') else " ") + '"'

    text = _JOINED.sub("", _CHARACTER.sub(letter, text))
    return _JOINED.sub("", _TURNED.sub(lambda match: '"' + match[1][::-1] + '"', text))


def macro_signs(part: Part) -> tuple[list[Sign], list[Part]]:
    """Return the signs of the macros ``part``, and the commands that stand in them as constants."""
    text = macro_text(part.text)
    runs = _RUNS.search(text)
    if runs is not None and (part.starts_itself or _AUTO.search(text) is not None):
        found = [_sign("document-macro-runs", part, text, runs)]
    else:
        found = [Sign("document-macro", part, part.line, part.text.strip().partition("\n")[0][:240])]
    commands = [one[1].replace('""', '"') for one in _STRING.finditer(text)]
    again = [
        Part(Kind.CODE, one, part.file, part.line, "shell", origin=part.origin) for one in commands if is_telling(one)
    ]
    return found, again[:_MOST]


def pdf_signs(part: Part) -> list[Sign]:
    """Return the signs of a script of a PDF."""
    match = _PDF_ACTS.search(part.text)
    if match is None or not part.starts_itself:
        return [Sign("document-script", part, part.line, part.text.strip()[:240])]
    return [_sign("document-macro-runs", part, part.text, match)]


def office_signs(part: Part) -> Iterator[Sign]:
    """Yield the signs of what a document holds beside text: relations, fields, cells, objects."""
    text = part.text
    named = {"macro sheet": "document-macro", "package": "document-embeds", "pdf file": "document-embeds"}
    named |= {"pdf launch": "document-launches", "pdf script": "document-script"}
    if text in named:
        yield Sign(named[text], part, part.line, part.origin)
        return
    if part.origin.startswith("fields of"):
        if (match := _FIELD.search(text)) is not None:
            yield _sign("document-launches", part, text, match)
        return
    if (match := _CELL.search(text)) is not None:
        yield _sign("document-launches", part, text, match)
    if (match := _ODF_LOADS.search(text)) is not None:
        yield sign("document-loads-code", part, text.count("\n", 0, match.start()), match[1])
    if part.origin.lower().endswith(".rels"):
        yield from _relations(part)


def _relations(part: Part) -> Iterator[Sign]:
    for _number, match in zip(range(2000), _RELATION.finditer(part.text), strict=False):
        values = {name.lower(): value for name, value in _ATTRIBUTE.findall(match[1])}
        if values.get("targetmode", "").lower() != "external":
            continue
        kind = values.get("type", "").rpartition("/")[2].lower()
        target = values.get("target", "")
        if kind == "hyperlink" or not (_REMOTE.match(target) or _FAR.match(target)):
            continue
        loads = kind in _LOADED and _REMOTE.match(target) is not None
        yield Sign(
            "document-loads-code" if loads else "document-loads", part, part.line, f"{kind}: {target}"[:240], target
        )


def _sign(name: str, part: Part, text: str, match: re.Match[str]) -> Sign:
    start = text.rfind("\n", 0, match.start()) + 1
    return Sign(
        name, part, part.line, text[max(start, match.start() - 80) : match.end() + 120].partition("\n")[0][:240]
    )
