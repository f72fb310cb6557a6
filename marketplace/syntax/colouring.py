"""Ask for the colours of a file, and keep those of the files that were looked at last."""

from __future__ import annotations

import hashlib
import json
import subprocess
import sys
from collections import OrderedDict
from pathlib import Path, PurePosixPath
from threading import Lock, Timer
from typing import Final

Part = tuple[str, str]
"""A piece of a line, and the class of its colour; an empty class is plain text."""

# What is longer is shown without colours.
LARGEST: Final = 200_000
_SECONDS: Final = 1.5
# Who comes while a slow text is read gets his file without colours instead of waiting in turn.
_PATIENCE: Final = 0.5
_KEPT_FILES: Final = 64
_CHILD: Final = Path(__file__).with_name("child.py")
# Looked up by the name of the file alone: a guess by content would run every lexer over hostile text.
_BY_SUFFIX: Final = {
    **dict.fromkeys((".py", ".pyi", ".pyw"), "python"),
    **dict.fromkeys((".sh", ".bash", ".zsh", ".ksh"), "bash"),
    **dict.fromkeys((".js", ".mjs", ".cjs", ".jsx"), "javascript"),
    **dict.fromkeys((".ts", ".mts", ".cts", ".tsx"), "typescript"),
    **dict.fromkeys((".json", ".jsonl", ".ipynb"), "json"),
    **dict.fromkeys((".yaml", ".yml"), "yaml"),
    **dict.fromkeys((".html", ".htm", ".svg", ".xml"), "html"),
    **dict.fromkeys((".ps1", ".psm1", ".psd1"), "powershell"),
    **dict.fromkeys((".ini", ".cfg"), "ini"),
    **dict.fromkeys((".c", ".h"), "c"),
    **dict.fromkeys((".cc", ".cpp", ".hpp"), "cpp"),
    **dict.fromkeys((".diff", ".patch"), "diff"),
    **dict.fromkeys((".bat", ".cmd"), "batch"),
    ".cs": "csharp",
    ".css": "css",
    ".go": "go",
    ".java": "java",
    ".lua": "lua",
    ".php": "php",
    ".pl": "perl",
    ".rb": "ruby",
    ".rs": "rust",
    ".sql": "sql",
    ".toml": "toml",
}
_BY_NAME: Final = {"dockerfile": "docker", "containerfile": "docker", "makefile": "make", ".bashrc": "bash"}
_BY_INTERPRETER: Final = {"python": "python", "bash": "bash", "zsh": "bash", "sh": "bash", "node": "javascript"}

LANGUAGES: Final = frozenset({*_BY_SUFFIX.values(), *_BY_NAME.values(), *_BY_INTERPRETER.values()})


def language_of(path: str, text: str) -> str:
    """Return the lexer for a file by its name, or by the interpreter that its first line names; or an empty string."""
    name = PurePosixPath(path).name.lower()
    known = _BY_NAME.get(name) or _BY_SUFFIX.get(PurePosixPath(name).suffix, "")
    if known or not text.startswith("#!"):
        return known
    words = text.split("\n", 1)[0][2:200].replace("/", " ").split()
    return next((_BY_INTERPRETER[word] for raw in words if (word := raw.rstrip("0123456789.")) in _BY_INTERPRETER), "")


class Colouring:
    """The process that finds colours, begun when the first file is asked for, and the answers of the last files."""

    def __init__(self, seconds: float = _SECONDS, command: tuple[str, ...] = (sys.executable, "-I", str(_CHILD))):
        """Give each file at most ``seconds``; ``command`` begins the process."""
        self._seconds = seconds
        self._command = command
        self._child: subprocess.Popen[str] | None = None
        self._asking = Lock()
        self._keeping = Lock()
        self._kept: OrderedDict[str, list[list[Part]] | None] = OrderedDict()

    def lines(self, path: str, text: str) -> list[list[Part]] | None:
        """Return the parts of each line of the file ``path``, or ``None`` where it is shown without colours.

        It is for a language that is not known, over ``LARGEST`` characters, for a text that takes too long, and while
        others wait. The parts of a line joined are that line.
        """
        language = language_of(path, text)
        if not language or len(text) > LARGEST:
            return None
        key = hashlib.sha256(f"{language}\n{text}".encode("utf-8", "surrogatepass")).hexdigest()
        with self._keeping:
            if key in self._kept:
                self._kept.move_to_end(key)
                return self._kept[key]
        if not self._asking.acquire(timeout=_PATIENCE):
            return None
        try:
            found = self._ask(language, text)
        finally:
            self._asking.release()
        lines = None if found is None else _lines(text, found)
        with self._keeping:
            self._kept[key] = lines
            if len(self._kept) > _KEPT_FILES:
                self._kept.popitem(last=False)
        return lines

    def _ask(self, language: str, text: str) -> list[tuple[int, str]] | None:
        child = self._running()
        if child.stdin is None or child.stdout is None:
            raise AssertionError("it was begun with both pipes")
        stop = Timer(self._seconds, child.kill)
        stop.daemon = True
        stop.start()
        try:
            child.stdin.write(json.dumps([language, text]) + "\n")
            child.stdin.flush()
            answer = child.stdout.readline()
        except OSError:
            answer = ""
        finally:
            stop.cancel()
        if not answer.endswith("\n"):
            # It was killed, or has ended by itself for want of memory; the next file gets a new one.
            self.close()
            return None
        found: list[tuple[int, str]] | None = json.loads(answer)
        return found

    def _running(self) -> subprocess.Popen[str]:
        if self._child is None or self._child.poll() is not None:
            self.close()
            self._child = subprocess.Popen(
                self._command,
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=subprocess.DEVNULL,
                encoding="utf-8",
                env={},
            )
        return self._child

    def close(self) -> None:
        """End the process, if there is one; the next file begins another."""
        child, self._child = self._child, None
        if child is None:
            return
        child.kill()
        for pipe in (child.stdin, child.stdout):
            if pipe is not None:
                try:
                    pipe.close()
                except BrokenPipeError:
                    # What was written and not read is lost with the process, which is what was asked for.
                    continue
        child.wait()


def _lines(text: str, found: list[tuple[int, str]]) -> list[list[Part]]:
    lines: list[list[Part]] = [[]]
    place = 0
    for length, colour in found:
        for number, piece in enumerate(text[place : place + length].split("\n")):
            if number:
                lines.append([])
            if piece:
                lines[-1].append((piece, colour))
        place += length
    return lines


colouring = Colouring()
