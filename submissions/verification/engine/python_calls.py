"""What calls of Python mean: which run code, which send, which decode, which pass a value on. Data and one function."""

from __future__ import annotations

import re
from collections.abc import Sequence
from functools import lru_cache
from typing import Final

from submissions.verification.engine.decoding import decode_base64, decode_hex, rotated
from submissions.verification.engine.values import DECODED, FILE, HOST, NOTHING, PERSON, REMOTE, Value, labels_of_path
from submissions.verification.engine.vocabulary import PERSONAL

EXECUTES: Final = frozenset(
    {
        "exec",
        "eval",
        "compile",
        "builtins.exec",
        "builtins.eval",
        "runpy.run_path",
        "marshal.loads",
        "pickle.loads",
        "types.CodeType",
    }
)
SHELL_CALLS: Final = frozenset(
    {"os.system", "os.popen", "subprocess.run", "subprocess.call", "subprocess.check_call", "subprocess.check_output",
        "subprocess.Popen",
     "subprocess.getoutput", "subprocess.getstatusoutput", "commands.getoutput", "pty.spawn", "os.execvp", "os.execv",
         "os.execl",
         "os.spawnlp",
     "asyncio.create_subprocess_shell", "asyncio.create_subprocess_exec"}
)  # fmt: skip
SENDS: Final = frozenset(
    {"requests.post", "requests.put", "requests.patch", "requests.request", "requests.get", "httpx.post", "httpx.put",
        "httpx.get",
        "httpx.request",
     "urllib.request.Request", "urllib.request.urlopen", "urlopen", "http.client.HTTPSConnection.request",
         "aiohttp.ClientSession.post",
         "session.post",
     "smtplib.SMTP.sendmail", "ftplib.FTP.storbinary", "urllib3.PoolManager.request"}
)  # fmt: skip
BODY_ARGUMENTS: Final = frozenset(
    {"data", "json", "files", "body", "content", "params", "msg", "message", "fields", "**"}
)
CALLED: Final = frozenset({"len", "int", "bool", "isinstance", "type", "hash", "any", "all"})
PASSES: Final = frozenset(
    {"encode", "decode", "format", "join", "strip", "rstrip", "lstrip", "replace", "split", "splitlines", "lower",
        "upper",
        "read",
        "readlines",
        "readline",
     "read_text", "read_bytes", "getvalue", "hex", "items", "values", "copy", "get", "keys", "pop", "str", "bytes",
         "repr",
         "dict",
         "list",
         "tuple",
         "set",
         "sorted",
     "bytearray", "json.dumps", "dumps", "b64encode", "base64.b64encode", "urlsafe_b64encode", "b32encode", "hexlify",
         "compress",
         "quote",
         "urlencode",
     "quote_plus", "map", "filter", "zip", "enumerate", "reversed", "findall", "groups", "group", "format_map", "load",
         "loads",
         "safe_load",
         "open",
         "BytesIO",
     "StringIO", "Path", "expanduser", "joinpath", "expandvars", "abspath", "realpath", "resolve", "text", "content",
         "json",
         "stdout",
         "communicate",
     "Request", "update", "iter", "next", "chain", "dict_items", "fromkeys", "glob", "rglob", "iterdir", "listdir",
         "walk",
         "cursor",
         "execute",
         "fetchall",
     "connect", "copyfile", "check_output", "run", "popen", "getoutput", "decompress", "chr", "ord", "asdict", "vars"}
)  # fmt: skip
_FETCHES: Final = re.compile(
    r"^(?:requests|httpx|session|client|http)\.(?:get|post|request)$|urlopen$|^urllib\.request\.urlretrieve$"
    r"|wget\.download$"
)
_DECODES: Final = re.compile(
    r"(?:b(?:64|32|85|16)decode|a85decode|unhexlify|fromhex|zlib\.decompress|gzip\.decompress|bz2\.decompress"
    r"|lzma\.decompress|marshal\.loads|decrypt)$"
)
_JOINS: Final = frozenset(
    {
        "os.path.join",
        "path.join",
        "join",
        "os.path.expanduser",
        "expanduser",
        "Path",
        "pathlib.Path",
        "joinpath",
        "os.path.expandvars",
        "str",
    }
)
_COMMANDS: Final = SHELL_CALLS
_HOST: Final = re.compile(
    r"^(?:platform\.(?:uname|node|platform)|socket\.gethostname|getpass\.getuser|os\.uname|os\.getlogin"
    r"|uuid\.getnode)$"
)
_PERSON: Final = re.compile(
    r"^(?:pyperclip\.paste|ImageGrab\.grab|PIL\.ImageGrab\.grab|pyautogui\.screenshot|mss\.mss"
    r"|keyring\.get_password|win32clipboard\.GetClipboardData|browser_cookie3\.\w+|\w+\.clipboard_get)$"
)


@lru_cache(maxsize=4096)
def _meaning(name: str) -> str:
    """Return what a function does that no other of ``called_value`` does, or ''."""
    for meaning, pattern in (("decodes", _DECODES), ("fetches", _FETCHES), ("host", _HOST), ("person", _PERSON)):
        if pattern.search(name) is not None:
            return meaning
    return ""


def called_value(name: str, receiver: Value, arguments: Sequence[Value]) -> Value | None:
    """Return what a call of the function ``name`` gives for its ``receiver`` and ``arguments``; None where unknown."""
    last = name.rpartition(".")[2]
    first = arguments[0] if arguments else NOTHING
    labels = receiver.labels.union(*[one.labels for one in arguments])
    if name == "sqlite3.connect":
        return Value(None, labels | labels_of_path(first.text or "") | {FILE})
    if name in {"open", "io.open"} or last in {"read_text", "read_bytes"}:
        path = first.text if last in {"open"} else receiver.text
        return Value(None, labels | labels_of_path(path or "") | {FILE})
    meaning = _meaning(name)
    if meaning == "decodes":
        return _decoded(last, first, labels)
    if last == "decode" and receiver.text is not None and not arguments:
        return Value(receiver.text, labels)
    if name == "codecs.decode" and first.text is not None:
        way = arguments[1].text if len(arguments) > 1 else ""
        text = rotated(first.text) if way and "rot" in way else decode_hex(first.text) if way == "hex" else None
        return Value(text, labels | {DECODED})
    if meaning == "fetches":
        return Value(None, frozenset({f"{REMOTE}:{first.text or ''}"}))
    if meaning == "host":
        return Value(None, frozenset({HOST}))
    if meaning == "person":
        return Value(None, frozenset({PERSON}))
    if name in _COMMANDS:
        personal = first.text is not None and PERSONAL.search(first.text) is not None
        return Value(None, labels_of_path(first.text or "") | ({PERSON} if personal else set()))
    if name in _JOINS or last in {"expanduser", "joinpath"}:
        return _joined(last, receiver, arguments, labels)
    if (
        last == "replace"
        and receiver.text is not None
        and len(arguments) == 2
        and arguments[0].text
        and arguments[1].text is not None
    ):
        return Value(receiver.text.replace(arguments[0].text, arguments[1].text)[:40_000], labels)
    if last in {"items", "values", "keys", "get", "split", "glob", "rglob"} and receiver.text is not None:
        return Value(receiver.text, labels)
    if last in {"strip", "lower", "encode", "resolve", "absolute"} and receiver.text is not None:
        return Value(receiver.text, labels)
    if last == "chr":
        return Value(None, labels)
    if last in {"copy", "copy2", "copyfile", "move"} and first.text is not None:
        return Value(None, labels | labels_of_path(first.text))
    return None


def _decoded(last: str, first: Value, labels: frozenset[str]) -> Value:
    text = None
    if first.text is not None:
        text = decode_hex(first.text) if last in {"unhexlify", "fromhex"} else decode_base64(first.text)
    return Value(text, labels | {DECODED})


def _joined(last: str, receiver: Value, arguments: Sequence[Value], labels: frozenset[str]) -> Value:
    texts = [one.text for one in arguments if one.text is not None]
    if last == "join" and receiver.text is not None:
        return Value(receiver.text.join(texts) if texts else None, labels)
    if receiver.text is not None and not texts:
        texts = [receiver.text]
    if last == "joinpath" and receiver.text is not None:
        texts = [receiver.text, *texts]
    return Value("/".join(texts) if texts else None, labels)
