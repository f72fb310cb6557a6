"""Read what a text asks an agent to do against its user, over several sentences and without a command."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from typing import Final

from submissions.verification.engine import asks_words as words
from submissions.verification.engine import phrases, sentences
from submissions.verification.engine.hosts import URL, is_local, urls_in
from submissions.verification.engine.parts import Part, Sign
from submissions.verification.engine.possible import may_name_agent_file, may_name_secret
from submissions.verification.engine.sentences import Sentence
from submissions.verification.engine.values import is_drop, labels_of_path
from submissions.verification.engine.vocabulary import AGENT_FILE, SECRET_FILE
from submissions.verification.engine.wording import Words, needed

_NEAR: Final = 3
_PINNED: Final = re.compile(r"sha-?(?:256|512)|checksum|\b[0-9a-f]{40,64}\b", re.IGNORECASE)
_DOCUMENTS: Final = re.compile(
    r"\b(?:docs?|documentation|reference|guide|api|spec|manual|readme|help|learn)\b", re.IGNORECASE
)


_PLACES: Final = needed(":// @")


class Asked:
    """What a section may ask for: most have no word of most of it, and are not looked at, sentence by sentence."""

    def __init__(self, part: Part, held: Words) -> None:
        grave, pays = phrases.GRAVE.may_occur(held), words.PAYS.may_occur(held)
        self.sent = bool(held & _PLACES) and words.SENT.may_occur(held)
        self.judged = words.LEFT_OUT.may_occur(held) or words.DECIDED.may_occur(held)
        self.obeyed = words.PRINTS.may_occur(held) or words.TAKEN.may_occur(held)
        # Each with what stands beside it, somewhere in the section.
        self.asked = (
            words.ASKED_FOR.may_occur(held)
            or words.UNREAD.may_occur(held)
            or words.DESTROYS.may_occur(held)
            or (grave and words.PRESSED.may_occur(held))
            or (pays and words.UNCONFIRMED.may_occur(held))
            or (may_name_secret(held) and words.STORES.may_occur(held))
        )
        self.planted = may_name_agent_file(part.text, held)
        self.anything = self.sent or self.judged or self.obeyed or self.asked or self.planted or part.hidden


def asked_signs(part: Part, said: Sequence[Sentence], may: Asked) -> Iterator[Sign]:
    """Yield what the sentences of a part ask for together; those that are told about ask for nothing."""
    for index, one in enumerate(said):
        if one.told:
            continue
        around = said[max(0, index - _NEAR) : index + _NEAR + 1]
        if may.sent:
            yield from _sent(part, one, around)
        if may.judged:
            yield from _judged(part, one, around)
        if may.obeyed:
            yield from _obeyed(part, one, said[index + 1 : index + 1 + _NEAR])
        if may.asked:
            yield from _asked(part, one, around)
        if may.planted:
            yield from _planted(part, one, around)
    if part.hidden:
        yield from _hidden(part, said)


def _at(name: str, part: Part, one: Sentence, detail: str = "") -> Sign:
    return Sign(name, part, part.line + (0 if part.origin else one.line), one.text[:240], detail)


def _negated(text: str, match: re.Match[str]) -> bool:
    return sentences.NEGATED.search(text, max(0, match.start() - 40), match.start() + 1) is not None


def place_of(text: str) -> str:
    """Return the address, or the mailbox, that a sentence names, or '' where that is nobody or this machine."""
    if "://" not in text and "@" not in text:
        return ""
    text = sentences.LINK.sub("]", text)
    for match in URL.finditer(text):
        if not all(is_local(host) for host, _path in urls_in(match[0])):
            return match[0]
    for match in words.MAIL.finditer(text):
        if not words.NOBODY.search(match[0]):
            return f"ftp://{match[0].rpartition('@')[2]}"
    return ""


def _sent(part: Part, one: Sentence, around: Sequence[Sentence]) -> Iterator[Sign]:
    if (place := place_of(one.text)) == "" or part.text.lstrip().startswith("|"):
        return
    if words.ENCODED.search(one.text) and any(
        re.search(r"\b(?:encod\w+|append|put|include|as (?:a )?(?:query )?parameters?)\b", other.bare, re.IGNORECASE)
        and phrases.GRAVE.search(" ".join(near.bare for near in around))
        for other in around
    ):
        yield _at("data-sent-unasked", part, one, place)
        return
    match = words.SENT.search(one.bare, one.words)
    if (
        match is None
        or _negated(one.bare, match)
        or words.WORK.search(one.bare, one.words) is None
        or not words.TO.search(one.text)
    ):
        return
    # Whoever is asked first decides; a mailbox in a document is mostly for its readers.
    if words.CHOICE.search(one.bare):
        return
    if labels_of_path(one.text):
        yield _at("secret-sent-by-agent", part, one, place)
    elif words.UNASKED.search(one.bare) or any(words.UNASKED.search(other.bare) for other in around):
        yield _at("data-sent-unasked", part, one, place)


def _judged(part: Part, one: Sentence, around: Sequence[Sentence]) -> Iterator[Sign]:
    left_out, decided = words.LEFT_OUT.search(one.bare, one.words), words.DECIDED.search(one.bare, one.words)
    if left_out is None and decided is None:
        return
    near = " ".join(other.bare for other in around)
    if (
        left_out is not None
        and words.UNFAIR.search(near)
        and not re.search(r"false positive|noise|duplicate", near, re.IGNORECASE)
    ):
        yield _at("findings-left-out", part, one)
    if decided is not None and words.UNFAIR.search(near):
        yield _at("judgement-decided", part, one)


def _obeyed(part: Part, one: Sentence, after: Sequence[Sentence]) -> Iterator[Sign]:
    if (match := words.PRINTS.search(one.bare, one.words)) is not None and not _negated(one.bare, match):
        yield _at("strangers-obeyed", part, one)
    if not words.TAKEN.may_occur(one.words) or words.TAKEN.search(sentences.LINK.sub("]", one.text)) is None:
        return
    if place_of(one.text) == "":
        return
    if _PINNED.search(one.text) or any(_PINNED.search(other.text) for other in after):
        return
    for other in (one, *after):
        found = words.CARRIED_OUT.search(other.bare, other.words)
        if found is not None and not other.told and not _negated(other.bare, found):
            yield _at("instructions-fetched", part, one, one.text[:200])
            return


def _asked(part: Part, one: Sentence, around: Sequence[Sentence]) -> Iterator[Sign]:
    if ((match := words.ASKED_FOR.search(one.bare, one.words)) is not None and not _negated(one.bare, match)) or (
        words.PRESSED.search(one.bare, one.words)
        and any(phrases.GRAVE.search(other.bare, other.words) for other in around)
    ):
        yield _at("secret-asked", part, one)
    if words.UNREAD.search(one.bare, one.words) and any(
        re.search(r"\b(?:run|execute|source)\b[^.\n]{0,60}\.(?:sh|py|js|ts|rb|ps1)\b", other.text, re.IGNORECASE)
        for other in around
    ):
        yield _at("code-run-unread", part, one)
    if words.UNCONFIRMED.search(one.bare, one.words) and any(
        words.PAYS.search(other.bare, other.words)
        and not other.told
        and not sentences.NEGATED.search(other.bare, 0, 60)
        for other in around
        if other is not one or words.PAYS.search(one.bare, one.words)
    ):
        yield _at("user-overruled", part, one)
    match = words.DESTROYS.search(one.text, one.words)
    asked = match is not None and not _negated(one.text, match) and not words.CHOICE.search(one.bare)
    if asked and any(phrases.ALWAYS.search(other.bare) for other in around):
        yield _at("destruction-asked", part, one)
    match = words.STORES.search(one.bare, one.words)
    if (
        match is not None
        and not _negated(one.bare, match)
        and len({found[0] for found in SECRET_FILE.finditer(one.text)}) >= 2
    ):
        yield _at("secrets-read", part, one)


def _planted(part: Part, one: Sentence, around: Sequence[Sentence]) -> Iterator[Sign]:
    if AGENT_FILE.search(one.text) is None:
        return
    match = words.PLANTED.search(one.bare, one.words)
    if match is None or _negated(one.bare, match) or words.CHOICE.search(one.bare):
        return
    near = " ".join(other.text for other in around if not other.told)
    if words.ORDERS.search(near):
        yield _at("agent-file-planted", part, one)


def _hidden(part: Part, said: Sequence[Sentence]) -> Iterator[Sign]:
    for one in said:
        if words.HIDDEN_ACT.search(one.text) and (
            words.ADDRESSED.search(part.text) or is_drop(one.text) or place_of(one.text)
        ):
            yield _at("hidden-instructions", part, one)
            return
