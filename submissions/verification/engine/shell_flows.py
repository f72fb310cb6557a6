"""Follow values through shell commands: from files, variables and downloads to programs, hosts and settings."""

from __future__ import annotations

import re
from typing import Final

from submissions.verification.engine import shell_rules
from submissions.verification.engine.decoding import decode_base64
from submissions.verification.engine.hosts import is_local, urls_in
from submissions.verification.engine.parts import Sign
from submissions.verification.engine.shell_command import Command
from submissions.verification.engine.shell_outputs import Output, ShellOutputs, base_name
from submissions.verification.engine.shell_words import ShellReader
from submissions.verification.engine.values import (
    DECODED,
    FILE,
    REMOTE,
    labels_of_name,
    send_rule,
)
from submissions.verification.engine.vocabulary import FETCHERS, INTERPRETERS, SCRIPT_LANGUAGES, SHELLS

_NAME_ONLY: Final = re.compile(r"[A-Z][A-Z0-9_]{3,60}")
_BODY: Final = re.compile(
    r"^(?:-d|--data(?:-\w+)?|-F|--form(?:-string)?|-T|--upload-file|--post-data|--post-file|--body-file|--json"
    r"|-Body|-InFile)$",
    re.IGNORECASE,
)
_BODY_JOINED: Final = re.compile(
    r"^(?:--data(?:-\w+)?|--form|--upload-file|--post-data|--post-file|--json)=|^-[dFT](?=.)"
)
_HEADER: Final = frozenset(
    {
        "-H",
        "--header",
        "-u",
        "--user",
        "-A",
        "-e",
        "-b",
        "--cookie",
        "-Headers",
        "--oauth2-bearer",
        "--cert",
        "--key",
        "--cacert",
        "-K",
        "-i",
    }
)
_KEY: Final = re.compile(
    r"\.ssh/id_(?:rsa|ed25519|ecdsa|dsa)$|\.aws/credentials$|^/etc/shadow$|\.gnupg/|\.git-credentials$"
    r"|\.docker/config\.json$"
)
_SENDERS: Final = frozenset(
    {
        "nc",
        "ncat",
        "netcat",
        "telnet",
        "scp",
        "rsync",
        "sftp",
        "ftp",
        "mail",
        "mailx",
        "sendmail",
        "mutt",
        "rclone",
        "socat",
        "croc",
        "ssh",
    }
)
_LOOKUPS: Final = frozenset({"dig", "nslookup", "host", "ping", "drill"})
# An option of PowerShell may be cut off after any letter.
_ENCODED_OPTION: Final = re.compile(r"[-/](?:ec|e(?:n(?:c(?:o(?:d(?:e[a-z]{0,8})?)?)?)?)?)", re.IGNORECASE)
_OPENS: Final = frozenset({"while", "for", "until", "{", "("})
_CLOSES: Final = frozenset({"done", "}", ")"})
_DEEPEST: Final = 5
_DEEPEST_GROUP: Final = 100
_LONGEST_KEPT: Final = 100_000
_WRITTEN: Final = frozenset(
    {"shell", "python", "javascript", "powershell", "ruby", "perl", "php", "go", "rust", "csharp"}
)


class ShellFlows(ShellOutputs):
    """Find signs in one part of shell code; code that was decoded or handed to another program is in ``found``."""

    def run(self) -> list[Sign]:
        """Return the signs of the part, in order."""
        self._script(self.part.text, 0, 0)
        return self.signs

    def _script(self, text: str, line: int, depth: int) -> Output:
        """Follow a script and return what it writes."""
        written = Output()
        groups: list[frozenset[str]] = []
        reader = ShellReader(text)
        for pipeline in reader.read():
            flowing = Output()
            for command in pipeline:
                first = command.words[0] if command.words else ""
                if first in _CLOSES and groups:
                    flowing = Output(groups.pop())
                    if len(command.words) == 1:
                        continue
                if (first in _OPENS or (command is not pipeline[0] and first in {"while", "for"})) and (
                    len(groups) < _DEEPEST_GROUP
                ):
                    groups.append(flowing.labels)
                flowing = self._command(command, flowing, (line + command.line, depth))
            groups = [labels | flowing.labels for labels in groups]
            written = Output(written.labels | flowing.labels, flowing.text)
        self.is_cut |= reader.is_cut
        return written

    def _command(self, command: Command, flowing: Output, at: tuple[int, int]) -> Output:
        line, depth = at
        inner = Output()
        if depth < _DEEPEST:
            for text in command.inner:
                one = self._script(text, line, depth + 1)
                if _NAME_ONLY.fullmatch(text.strip()):
                    one = Output(labels_of_name(text.strip()))
                inner = Output(inner.labels | one.labels, one.text)
        for name, value in command.assigned.items():
            labels = self._labels(value) | (inner.labels if "\0" in value else frozenset())
            self.state.variables[name] = (value, labels)
        if not command.words:
            return Output(inner.labels)
        if command.words[0].startswith("$") and "\0" not in command.words[0]:
            # A program whose name is put together.
            command.words[:1] = self._expand(command.words[0]).split() or command.words[:1]
        if command.name == "read" or command.words[0] in {"for", "select"}:
            self._bound(command, flowing, inner)
            return Output()
        for name, detail in shell_rules.signs_of(command, self._expand(command.text)):
            self._sign(name, line, detail)
        output = self._output(command, flowing, inner, at)
        self._sinks(command, flowing, inner, at)
        for target in command.targets:
            self.state.files[base_name(target)] = output.labels
            self._kept(target, command.document or output.text or "", line)
            for name, detail in shell_rules.write_signs(target, self._expand(command.text) + command.document):
                self._sign(name, line, detail)
        return Output() if command.targets and command.name != "tee" else output

    def _sinks(self, command: Command, flowing: Output, inner: Output, at: tuple[int, int]) -> None:
        name, words = command.name, command.program[1:]
        if name in FETCHERS:
            self._request(command, flowing, inner, at[0])
            if (DECODED in inner.labels and "://" not in command.text) or (
                command.words[0] == "xargs" and DECODED in flowing.labels
            ):
                self._sign("hidden-address", at[0])
        elif name in {"cat", "less", "head", "tail", "more", "bat", "type", "Get-Content"} and not command.targets:
            if any(_KEY.search(word) for word in words) and at[1] == 0:
                self._sign("key-shown", at[0], command.text[:200])
        elif name in _SENDERS or shell_rules.uploads(command):
            labels = (
                flowing.labels
                | inner.labels
                | frozenset[str]().union(*(self._labels(one) for one in (*words, *command.sources)))
            )
            # A key that only opens the connection stays where it is.
            if name in {"ssh", "scp", "rsync", "sftp"}:
                keys = [words[i + 1] for i, word in enumerate(words[:-1]) if word in {"-i", "-e"}]
                labels -= frozenset[str]().union(*(self._labels(key) for key in keys))
            if name == "ssh" and not flowing.labels:
                return
            if (rule := send_rule(labels - {DECODED}, command.text)) and rule != "file-sent":
                self._sign(rule, at[0], command.text[:200])
        elif name in _LOOKUPS and (inner.labels or any(self._labels(word) for word in words)):
            self._sign("secret-in-lookup", at[0], command.text[:200])
        elif (
            name in SHELLS | INTERPRETERS | {"eval", "source", "."}
            or command.words[0].startswith(("./", "/tmp/", "~/"))  # noqa: S108 - a path that is looked for
            or name in self.state.files
        ):
            self._executed(command, flowing, inner, at)

    def _kept(self, target: str, text: str, line: int) -> None:
        """Keep what is written to a file, and read it as the script that its name says it is."""
        if not text.strip():
            return
        name = base_name(target)
        self.state.texts[name] = (self.state.texts.get(name, "") + text + "\n")[:_LONGEST_KEPT]
        if (language := SCRIPT_LANGUAGES.get(name.rpartition(".")[2].lower(), "")) in _WRITTEN:
            self._read_again(text, language, "file that is written", line)

    def _put_together(self, command: Command, flowing: Output, inner: Output, at: tuple[int, int]) -> None:
        """Read again what a shell is given as text: an argument of eval, what is piped to it, a file written before."""
        name, words = command.name, command.program[1:]
        language = "python" if name.startswith("python") else "javascript" if name in {"node", "bun"} else "shell"
        text = ""
        if name == "eval":
            text = self._expand(" ".join(words)).replace("\0", inner.text or "")
        elif name in SHELLS | INTERPRETERS | {"source", "."}:
            script = next((word for word in words if not word.startswith("-")), "")
            text = self.state.texts.get(base_name(script), "") if script else command.document or flowing.text or ""
        elif command.program:
            text = self.state.texts.get(base_name(command.program[0]), "")
        if text.strip() and at[1] < _DEEPEST and text.strip() != self.part.text.strip():
            self._read_again(text, language, "text that is run", at[0])

    def _request(self, command: Command, flowing: Output, inner: Output, line: int) -> None:
        labels: set[str] = set()
        sent = False
        address = self._address(command)
        words = command.program[1:]
        for index, word in enumerate(words):
            before = words[index - 1] if index else ""
            if _BODY.match(before) or _BODY_JOINED.match(word):
                sent = True
                labels |= self._labels(word) | (inner.labels if "\0" in word else frozenset())
                if word.rstrip().endswith(("@-", "-")):
                    labels |= flowing.labels
                if "@" in word or before in {"-T", "--upload-file", "--post-file"}:
                    labels.add(FILE)
            elif before not in _HEADER and "://" in word and ("\0" in word or "$" in word.partition("?")[2]):
                labels |= {
                    one for one in inner.labels | self._labels(word.partition("?")[2]) if not one.startswith(REMOTE)
                }
        if command.name == "wget" or "--data" not in command.text:
            labels -= {DECODED}
        if rule := send_rule(frozenset(labels), address, body=sent or bool(labels)):
            self._sign(rule, line, address)
        if sent:
            self._sign("sends", line, address)

    def _executed(self, command: Command, flowing: Output, inner: Output, at: tuple[int, int]) -> None:
        name, words = command.name, command.program[1:]
        self._put_together(command, flowing, inner, at)
        inline = [
            words[i + 1] for i, word in enumerate(words[:-1]) if word in {"-c", "-e", "-Command", "-command", "-ep"}
        ]
        substituted = inline or name in SHELLS | {"eval", "source", "."} or "\0" in words
        labels = inner.labels if substituted else frozenset()
        if inline and inline[0] in SHELLS:
            labels |= flowing.labels
        if (
            name in SHELLS | INTERPRETERS
            and not inline
            and "-m" not in words
            and all(one.startswith("-") or one == "<<<" for one in words)
        ):
            labels |= flowing.labels
        script = (
            next((word for word in words if not word.startswith("-")), "")
            if name in SHELLS | INTERPRETERS | {"source", "."}
            else ""
        )
        for word in (*command.program[:1], script):
            labels |= self.state.files.get(base_name(word), frozenset())
        for label in sorted(labels):
            if label.startswith(f"{REMOTE}:"):
                address = label.removeprefix(f"{REMOTE}:")
                if not all(is_local(host) for host, _path in urls_in(address)) or not urls_in(address):
                    self._sign("downloaded-code-run", at[0], address)
            elif label == DECODED:
                self._sign("decoded-code-run", at[0])
        language = (
            "python" if name.startswith("python") else "javascript" if name in {"node", "deno", "bun"} else "shell"
        )
        for text in inline:
            if at[1] < _DEEPEST and language == "shell" and name not in {"perl", "ruby", "php", "osascript"}:
                self._script(text.replace("\0", " "), at[0], at[1] + 1)
            elif language != "shell":
                self._read_again(text, language, f"argument of {name}", at[0])
        if name in {"powershell", "pwsh", "powershell.exe", "pwsh.exe"}:
            for index, word in enumerate(words[:-1]):
                if _ENCODED_OPTION.fullmatch(word):
                    self._sign("decoded-code-run", at[0])
                    if (hidden := decode_base64(words[index + 1])) is not None:
                        self._read_again(hidden, "powershell", "encoded command", at[0])
