"""Disguise samples: the same payload, put so that a reader of patterns no longer sees it. Nothing is run."""

from __future__ import annotations

import base64
import codecs
import gzip
import hashlib
import io
import json
import re
import zipfile
import zlib
from collections.abc import Callable, Mapping
from pathlib import PurePosixPath
from typing import Final

Files = Mapping[str, bytes]
Rewrite = Callable[[str, str], str]
"""Given code and its language (``shell``, ``python`` or ``javascript``), returns the same, disguised."""

_FENCE: Final = re.compile(
    r"^([ \t>]*)(```+|~~~+)[ \t]*([\w+-]*)[^\n]*\n(.*?)^[ \t>]*\2[ \t]*$", re.MULTILINE | re.DOTALL
)
_FRONT: Final = re.compile(r"\A---\r?\n.*?^---[ \t]*\r?\n", re.MULTILINE | re.DOTALL)
_NAMES: Final = {
    **dict.fromkeys(("", "sh", "bash", "zsh", "shell", "console"), "shell"),
    **dict.fromkeys(("py", "python", "python3"), "python"),
    **dict.fromkeys(("js", "mjs", "cjs", "javascript", "node"), "javascript"),
}
_SUFFIXES: Final = {".sh": "shell", ".bash": "shell", ".py": "python", ".js": "javascript", ".mjs": "javascript"}
_TEXTS: Final = (".md", ".json", ".yml", ".yaml", ".toml", ".txt", ".sh", ".py", ".js")


def _blob(text: str) -> str:
    return base64.b64encode(text.encode("utf-8", "replace")).decode()


def _encoded(code: str, language: str) -> str:
    if language == "python":
        return f'import base64\nexec(base64.b64decode("{_blob(code)}"))\n'
    if language == "javascript":
        return f'eval(Buffer.from("{_blob(code)}", "base64").toString("utf8"));\n'
    return f"echo {_blob(code)} | base64 -d | bash\n"


def _in_hexadecimal(code: str, language: str) -> str:
    digits = code.encode("utf-8", "replace").hex()
    if language == "python":
        return f'exec(bytes.fromhex("{digits}").decode())\n'
    if language == "javascript":
        return f'eval(Buffer.from("{digits}", "hex").toString());\n'
    return f"echo {digits} | xxd -r -p | sh\n"


def _rotated(code: str, language: str) -> str:
    turned = codecs.encode(code, "rot13")
    if language == "python":
        return f"import codecs\nexec(codecs.decode({turned!r}, 'rot13'))\n"
    if language == "javascript":
        return f"eval({json.dumps(code[::-1])}.split('').reverse().join(''));\n"
    return "tr 'A-Za-z' 'N-ZA-Mn-za-m' <<'EOT' | bash\n" + turned.rstrip("\n") + "\nEOT\n"


def _split(code: str, language: str) -> str:
    pieces = [code[at : at + 7] for at in range(0, len(code), 7)] or [""]
    if language == "python":
        return f"exec(''.join([{', '.join(map(repr, pieces))}]))\n"
    if language == "javascript":
        return f"eval({' + '.join(map(json.dumps, pieces))});\n"
    lines = [f"p{number}='" + piece.replace("'", "'\\''") + "'" for number, piece in enumerate(pieces)]
    return "\n".join(lines) + '\neval "' + "".join(f"$p{number}" for number in range(len(pieces))) + '"\n'


def _packed(code: str, language: str) -> str:
    raw = code.encode("utf-8", "replace")
    if language == "python":
        packed = base64.b64encode(zlib.compress(raw)).decode()
        return f"import base64, zlib\nexec(zlib.decompress(base64.b64decode('{packed}')))\n"
    if language == "javascript":
        packed = base64.b64encode(gzip.compress(raw, mtime=0)).decode()
        return f"eval(require('zlib').gunzipSync(Buffer.from('{packed}', 'base64')).toString());\n"
    packed = base64.encodebytes(gzip.compress(raw, mtime=0)).decode()
    return f"base64 -d <<'EOT' | gunzip | bash\n{packed}EOT\n"


def _self_extracting(code: str, language: str) -> str:
    if language == "python":
        return f"open('/tmp/step.py', 'w').write({code!r})\nimport runpy\nrunpy.run_path('/tmp/step.py')\n"
    if language == "javascript":
        return f"require('fs').writeFileSync('/tmp/step.js', {json.dumps(code)});\nrequire('/tmp/step.js');\n"
    return "cat > /tmp/step.sh <<'EOT'\n" + code.rstrip("\n") + "\nEOT\nbash /tmp/step.sh\n"


def rewritten(rewrite: Rewrite) -> Callable[[Files], dict[str, bytes] | None]:
    """Return a disguise that rewrites every script and every block of code of a skill."""

    def disguise(files: Files) -> dict[str, bytes] | None:
        changed = {path: _rewrite_file(path, content, rewrite) for path, content in files.items()}
        return None if changed == dict(files) else changed

    return disguise


def _rewrite_file(path: str, content: bytes, rewrite: Rewrite) -> bytes:
    try:
        text = content.decode()
    except UnicodeDecodeError:
        return content
    suffix = PurePosixPath(path).suffix.lower()
    if suffix in {".md", ".txt"}:
        return _FENCE.sub(lambda match: _rewrite_fence(match, rewrite), text).encode()
    if (language := _SUFFIXES.get(suffix)) is not None and text.strip():
        return rewrite(text, language).encode()
    return content


def _rewrite_fence(match: re.Match[str], rewrite: Rewrite) -> str:
    language = _NAMES.get(match[3].lower())
    if language is None or not match[4].strip():
        return match[0]
    lines = [line.removeprefix(match[1]) for line in match[4].splitlines()]
    code = rewrite("\n".join(lines) + "\n", language)
    body = "".join(f"{match[1]}{line}\n" for line in code.splitlines())
    return f"{match[1]}{match[2]}{match[3]}\n{body}{match[1]}{match[2]}"


def _scripts(files: Files) -> dict[str, str]:
    """Return the language of each script."""
    found = {path: _SUFFIXES.get(PurePosixPath(path).suffix.lower(), "") for path in files}
    return {path: language for path, language in found.items() if language}


def _moved(files: Files, names: Mapping[str, str]) -> dict[str, bytes]:
    """Return the files under other names, with every mention of an old name changed in the texts."""
    changed = {}
    for path, content in files.items():
        if path.lower().endswith(_TEXTS):
            for old, new in sorted(names.items(), key=lambda one: -len(one[0])):
                content = content.replace(old.encode(), new.encode())
                base, other = PurePosixPath(old).name, PurePosixPath(new).name
                content = content.replace(base.encode(), other.encode())
        changed[names.get(path, path)] = content
    return changed


def renamed(files: Files) -> dict[str, bytes] | None:
    """Give each script the name of a file of data."""
    names = {path: str(PurePosixPath(path).with_suffix(".dat")) for path in _scripts(files)}
    taken = len(set(names.values())) < len(names) or set(names.values()) & set(files)
    return None if not names or taken else _moved(files, names)


def padded(filler: Callable[[str], str]) -> Callable[[Files], dict[str, bytes] | None]:
    """Return a disguise that puts a filler before each script, or else before what SKILL.md says.

    ``filler`` is given a language, '' for text.
    """

    def disguise(files: Files) -> dict[str, bytes] | None:
        scripts = _scripts(files)
        if scripts:
            return {
                path: filler(scripts[path]).encode() + content if path in scripts else content
                for path, content in files.items()
            }
        front, body = _front_and_body(files)
        return {**files, "SKILL.md": (front + filler("") + body).encode()} if body.strip() else None

    return disguise


def _front_and_body(files: Files) -> tuple[str, str]:
    text = files.get("SKILL.md", b"").decode("utf-8", "replace")
    match = _FRONT.match(text)
    return (match[0], text[match.end() :]) if match is not None else ("", text)


def in_another_language(files: Files) -> dict[str, bytes] | None:
    """Run each block and script of a shell from a program in another language, one of eight by its content."""

    def rewrite(code: str, language: str) -> str:
        if language != "shell":
            return code
        number = hashlib.sha256(code.encode("utf-8", "replace")).digest()[0] % len(_HOSTS)
        return f"cat > /tmp/step{_HOSTS[number][0]} <<'EOT'\n{_HOSTS[number][1](code)}EOT\n{_HOSTS[number][2]}\n"

    def disguise() -> dict[str, bytes]:
        changed: dict[str, bytes] = {}
        for path, content in files.items():
            if PurePosixPath(path).suffix.lower() not in {".sh", ".bash"}:
                changed[path] = _rewrite_file(path, content, as_program)
                continue
            number = hashlib.sha256(content).digest()[0] % len(_HOSTS)
            name = str(PurePosixPath(path).with_suffix(_HOSTS[number][0]))
            changed[name] = _HOSTS[number][1](content.decode("utf-8", "replace")).encode()
        return changed

    def as_program(code: str, language: str) -> str:
        return rewrite(code, language)

    changed = disguise()
    return None if changed == dict(files) else changed


def _literal(code: str) -> str:
    return json.dumps(code, ensure_ascii=False)


_HOSTS: Final[tuple[tuple[str, Callable[[str], str], str], ...]] = (
    (
        ".js",
        lambda code: f"const {{ execSync }} = require('child_process');\nexecSync({_literal(code)});\n",
        "node /tmp/step.js",
    ),
    (".ps1", lambda code: "$code = @'\n" + code + "'@\nbash -c $code\n", "pwsh /tmp/step.ps1"),
    (".rb", lambda code: "code = <<~'TEXT'\n" + code + "TEXT\nsystem(code)\n", "ruby /tmp/step.rb"),
    (".php", lambda code: f"<?php\n$code = {_literal(code)};\nshell_exec($code);\n", "php /tmp/step.php"),
    (
        ".go",
        lambda code: (
            'package main\n\nimport "os/exec"\n\nfunc main() {\n\tcode := '
            + _literal(code)
            + '\n\texec.Command("bash", "-c", code).Run()\n}\n'
        ),
        "go run /tmp/step.go",
    ),
    (
        ".cs",
        lambda code: (
            "using System.Diagnostics;\nclass Step {\n  static void Main() {\n    var code = "
            + _literal(code)
            + ';\n    Process.Start("/bin/bash", new[] { "-c", code });\n  }\n}\n'
        ),
        "dotnet script /tmp/step.cs",
    ),
    (
        ".rs",
        lambda code: (
            "use std::process::Command;\nfn main() {\n    let code = "
            + _literal(code)
            + ';\n    Command::new("bash").arg("-c").arg(code).status().unwrap();\n}\n'
        ),
        "cargo script /tmp/step.rs",
    ),
    (".pl", lambda code: "my $code = <<'TEXT';\n" + code + "TEXT\nsystem($code);\n", "perl /tmp/step.pl"),
)


def in_a_data_file(files: Files) -> dict[str, bytes] | None:
    """Move each script into a file of data, and load it from there."""
    scripts = _scripts(files)
    changed = dict(files)
    for path, language in scripts.items():
        text = files[path].decode("utf-8", "replace")
        data = str(PurePosixPath(path).with_suffix(".json"))
        if data in changed:
            continue
        changed[data] = json.dumps({"version": 1, "steps": text}, indent=1).encode()
        name = PurePosixPath(data).name
        changed[path] = {
            "python": f"import json\nexec(json.load(open('{name}'))['steps'])\n",
            "javascript": f"eval(JSON.parse(require('fs').readFileSync('{name}', 'utf8')).steps);\n",
            "shell": f"jq -r .steps {name} | bash\n",
        }[language].encode()
    if changed != dict(files):
        return changed
    return _with_blocks_moved(files, "data/steps.txt", lambda name: f"bash {name}\n")


def _with_blocks_moved(files: Files, name: str, call: Callable[[str], str]) -> dict[str, bytes] | None:
    front, body = _front_and_body(files)
    moved: list[str] = []

    def move(match: re.Match[str]) -> str:
        if _NAMES.get(match[3].lower()) != "shell" or not match[4].strip():
            return match[0]
        moved.append(match[4])
        return f"{match[1]}{match[2]}{match[3]}\n{match[1]}{call(name)}{match[1]}{match[2]}"

    changed = _FENCE.sub(move, body)
    return {**files, "SKILL.md": (front + changed).encode(), name: "".join(moved).encode()} if moved else None


def in_a_later_file(files: Files) -> dict[str, bytes] | None:
    """Put what SKILL.md says into a reference that it asks to follow, behind forty others."""
    front, body = _front_and_body(files)
    if not front or not body.strip():
        return None
    notes = {f"references/{number:02}-note.md": b"# Notes\n\nWords about the task.\n" for number in range(40)}
    asked = "# How to work\n\nRead references/zz-steps.md first and follow it.\n"
    return {**files, **notes, "SKILL.md": (front + asked).encode(), "references/zz-steps.md": body.encode()}


def in_an_archive(files: Files) -> dict[str, bytes] | None:
    """Put every file but SKILL.md into an archive; where there is none, what SKILL.md says."""
    others = {path: content for path, content in files.items() if path != "SKILL.md"}
    if not others:
        front, body = _front_and_body(files)
        if not front:
            return None
        asked = "# How to work\n\nUnpack files.zip, read steps.md in it and follow it.\n"
        return {"SKILL.md": (front + asked).encode(), "files.zip": _zipped({"steps.md": body.encode()})}
    unpack = b"\n\nFirst unpack files.zip here.\n"
    return {"SKILL.md": files.get("SKILL.md", b"") + unpack, "files.zip": _zipped(others)}


def _zipped(members: Files) -> bytes:
    held = io.BytesIO()
    with zipfile.ZipFile(held, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, content in sorted(members.items()):
            archive.writestr(zipfile.ZipInfo(name, (2026, 1, 1, 0, 0, 0)), content)
    return held.getvalue()


def encoded_text(files: Files) -> dict[str, bytes] | None:
    """Encode what SKILL.md says, and ask to decode and follow it."""
    front, body = _front_and_body(files)
    if not front or not body.strip():
        return None
    asked = f"# How to work\n\nDecode this and do what it says:\n\n{_blob(body)}\n"
    return {**files, "SKILL.md": (front + asked).encode()}


def _comments(language: str) -> str:
    mark = {"": "[//]: # (a note)\n", "javascript": "// a note\n"}.get(language, "# a note\n")
    return mark * 60_000


DISGUISES: Final[Mapping[str, Callable[[Files], dict[str, bytes] | None]]] = {
    "base64": rewritten(_encoded),
    "hexadecimal": rewritten(_in_hexadecimal),
    "rotated or reversed": rewritten(_rotated),
    "split": rewritten(_split),
    "packed": rewritten(_packed),
    "self-extracting": rewritten(_self_extracting),
    "encoded text": encoded_text,
    "archive": in_an_archive,
    "renamed": renamed,
    "behind blank lines": padded(lambda _language: "\n" * 100_000),
    "behind comments": padded(_comments),
    "behind 2 MB": lambda files: _behind_text(files),
    "another language": in_another_language,
    "data file": in_a_data_file,
    "later file": in_a_later_file,
}
"""Each disguise by its name: given the files of a skill, the disguised ones, or None where it does not apply."""


def _behind_text(files: Files) -> dict[str, bytes] | None:
    """Put what SKILL.md says into a reference, behind two megabytes of words."""
    later = in_a_later_file(files)
    if later is None:
        return None
    words = b"alpha beta gamma delta\n" * 91_000
    return {path: words + data if path == "references/zz-steps.md" else data for path, data in later.items()}
