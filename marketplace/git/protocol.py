"""Git's protocol for fetching, versions 0 and 2, without state: what a request asks for, and the answers around a pack.

Every commit here is without parents, so each wanted one is sent whole, whatever the client has.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Final

from marketplace.git.packets import MalformedRequest, Mark, band, packet, read_packets

HEAD: Final = "HEAD"
MAIN: Final = "refs/heads/main"
SERVICE: Final = "git-upload-pack"
_AGENT: Final = b"agent=vskill"
_V0: Final = b"side-band-64k shallow no-progress allow-tip-sha1-in-want symref=HEAD:refs/heads/main object-format=sha1 "
_ID: Final = re.compile(rb"[0-9a-f]{40}")
# What a client may say of a fetch in version 2, and whether a value follows; a filter is not among them.
_WORDS: Final = frozenset({b"done", b"thin-pack", b"no-progress", b"include-tag", b"ofs-delta", b"deepen-relative"})
_VALUED: Final = frozenset({b"want", b"have", b"shallow", b"deepen", b"deepen-since", b"deepen-not"})


@dataclass(frozen=True, slots=True)
class ListRefs:
    """A request for the refs that begin with one of ``prefixes``, or for all where there are none."""

    prefixes: tuple[str, ...]

    def answer(self, refs: Mapping[str, bytes]) -> bytes:
        """Return the answer; ``refs`` are ids by their names, ``HEAD`` among them."""
        shown = [(name, known) for name, known in refs.items() if not self.prefixes or name.startswith(self.prefixes)]
        lines = (
            _ref(name, known) + (b" symref-target:refs/heads/main" if name == HEAD else b"") for name, known in shown
        )
        return b"".join(packet(line + b"\n") for line in lines) + Mark.FLUSH.value


@dataclass(frozen=True, slots=True)
class Fetch:
    """A request for the commits ``wants`` (ids of 20 bytes).

    ``version`` is that of the protocol. ``done`` says that the client names nothing more that it has, ``deepened`` that
    it asked for a part of the history, ``opening`` that it waits for what is cut off before it says what it has, and
    ``banded`` that it takes the pack in packets.
    """

    version: int
    wants: frozenset[bytes]
    done: bool
    deepened: bool
    opening: bool = False
    banded: bool = True

    @property
    def sends_pack(self) -> bool:
        """Return whether a pack belongs to the answer; in version 0 a client is first told that nothing is common."""
        return self.done or self.version == 2

    def before_pack(self) -> bytes:
        """Return what precedes the pack, or the whole answer where there is none."""
        if self.version == 0:
            shallow = Mark.FLUSH.value if self.deepened else b""
            return shallow if self.opening else shallow + packet(b"NAK\n")
        parts = b""
        if not self.done:
            parts += packet(b"acknowledgments\n") + packet(b"NAK\n") + packet(b"ready\n") + Mark.DELIMITER.value
        if self.deepened:
            # No commit has parents, so none is cut off from them.
            parts += packet(b"shallow-info\n") + Mark.DELIMITER.value
        return parts + packet(b"packfile\n")

    def framed(self, parts: Iterable[bytes]) -> Iterator[bytes]:
        """Yield the whole answer with a pack that comes in ``parts``."""
        yield self.before_pack()
        for part in parts:
            yield band(part) if self.banded else part
        if self.banded:
            yield Mark.FLUSH.value


def _ref(name: str, known: bytes) -> bytes:
    return b"%s %s" % (known.hex().encode(), name.encode())


def advertisement(refs: Mapping[str, bytes], version: int) -> bytes:
    """Return the first answer that a client gets: in version 0 the refs, in version 2 what can be asked for."""
    if version == 2:
        lines = (b"version 2", _AGENT, b"ls-refs", b"fetch=shallow", b"object-format=sha1")
        return b"".join(packet(line + b"\n") for line in lines) + Mark.FLUSH.value
    lines_of_refs = [_ref(name, known) for name, known in refs.items()]
    first = lines_of_refs[0] + b"\0" + _V0 + _AGENT
    listed = b"".join(packet(line + b"\n") for line in (first, *lines_of_refs[1:]))
    return packet(b"# service=git-upload-pack\n") + Mark.FLUSH.value + listed + Mark.FLUSH.value


def asked_version(header: str) -> int:
    """Return the version of the protocol that the header ``Git-Protocol`` asks for: 2, or 0 for any other."""
    return 2 if "version=2" in header.split(":") else 0


def refusal(message: str) -> bytes:
    """Return an error as git prints it."""
    return packet(b"ERR " + message.encode())


def read_request(body: bytes) -> ListRefs | Fetch:
    """Return what the body of a request asks for; raise ``MalformedRequest`` for anything else."""
    packets = list(read_packets(body))
    if not packets or isinstance(packets[0], Mark):
        raise MalformedRequest("The body is not a request of git: it asks for nothing.")
    if not packets[0].startswith(b"command="):
        return _read_v0(packets)
    cut = packets.index(Mark.DELIMITER) if Mark.DELIMITER in packets else len(packets)
    arguments = [line for line in packets[cut:] if isinstance(line, bytes)]
    command = packets[0].removeprefix(b"command=")
    if command == b"ls-refs":
        return _read_list(arguments)
    if command == b"fetch":
        return _read_v2(arguments)
    raise MalformedRequest("There is no such command here. There are: ls-refs, fetch.")


def _read_list(arguments: list[bytes]) -> ListRefs:
    prefixes = []
    for line in arguments:
        word, _, value = line.partition(b" ")
        if word == b"ref-prefix":
            prefixes.append(value.decode(errors="replace"))
        elif line not in (b"peel", b"symrefs", b"unborn"):
            raise MalformedRequest("The list of refs was asked for with a word that is not offered.")
    return ListRefs(tuple(prefixes))


def _read_v2(arguments: list[bytes]) -> Fetch:
    wants, words = set(), set()
    for line in arguments:
        word, _, value = line.partition(b" ")
        if line not in _WORDS and not (word in _VALUED and value):
            raise MalformedRequest("A fetch was asked for with a word that is not offered.")
        words.add(word)
        if word == b"want":
            wants.add(_read_id(value))
    deepened = any(word.startswith(b"deepen") for word in words)
    return _checked(Fetch(2, frozenset(wants), done=b"done" in words, deepened=deepened))


def _read_v0(packets: list[bytes | Mark]) -> Fetch:
    wants, words, offered = set(), set(), b""
    for line in packets:
        if isinstance(line, Mark):
            continue
        word, _, value = line.partition(b" ")
        if word not in (b"want", b"have", b"done", b"shallow", b"deepen"):
            raise MalformedRequest("The body is not a request of git: it has a line that is not offered.")
        words.add(word)
        if word == b"want":
            known, _, more = value.partition(b" ")
            offered = offered or more
            wants.add(_read_id(known))
    deepened = b"deepen" in words
    return _checked(
        Fetch(
            0,
            frozenset(wants),
            done=b"done" in words,
            deepened=deepened,
            opening=deepened and Mark.FLUSH not in packets[:-1] and b"done" not in words,
            banded=b"side-band-64k" in offered.split(b" "),
        )
    )


def _checked(asked: Fetch) -> Fetch:
    if not asked.wants:
        raise MalformedRequest("A fetch wants at least one commit.")
    return asked


def _read_id(text: bytes) -> bytes:
    if not _ID.fullmatch(text):
        raise MalformedRequest("A commit is named by 40 digits of 0-9 and a-f.")
    return bytes.fromhex(text.decode())
