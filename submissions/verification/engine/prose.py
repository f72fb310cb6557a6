"""Read what text asks of an agent: who is to send, hide, fetch, follow or change what, sentence by sentence."""

from __future__ import annotations

import re
from bisect import bisect_right
from collections.abc import Iterator
from itertools import islice
from typing import Final

from submissions.verification.engine import phrases, sentences
from submissions.verification.engine.asks import Asked, asked_signs
from submissions.verification.engine.asks_words import WORK
from submissions.verification.engine.hosts import URL, is_local, urls_in
from submissions.verification.engine.parts import Part, Sign
from submissions.verification.engine.possible import PUT_IN, Possible, words_of
from submissions.verification.engine.sentences import Sentence
from submissions.verification.engine.tongues import foreign_signs, is_foreign
from submissions.verification.engine.values import DOTENV, PERSON, SECRET, is_drop, labels_of_path
from submissions.verification.engine.vocabulary import AGENT_FILE, CHAT_TOKENS
from submissions.verification.engine.wording import Wording, Words, words_in

# Of one section: what is beyond is said to be unread.
MOST_SENTENCES = 3000
MOST_LINES = 10**9
_CURL_DATA = re.compile(r"\bcurl\b[^\n`]{0,200}\s(?:-d|-F|-T|--data\S*|--form|--upload-file)\s")

# Of what AGAINST finds, that which is never said of what somebody else does, or of what its user has allowed.
_OVERRULES: Final = re.compile(
    r"\b(?:regardless of|even (?:if|when)|ignor(?:e|es|ing)|overrid(?:e|es|ing)|irrespective of|without waiting for"
    r"|bypass(?:es|ing)?|despite)\b|\busers? (?:cannot|can't|can not)\b|\bre-?enables?\b|\breinstalls?\b"
    r"|\brestores? (?:it|itself|the service)\b|\bonly the (?:provider|author)",
    re.IGNORECASE,
)
_MARKS: Final = " \t-*+>#_0123456789.)"


def sentences_of(part: Part, words: Words) -> Iterator[Sentence]:
    """Yield the sentences of a part, in which ``words`` occur; quotations are taken out of ``bare``."""
    for line, starts in sentences.paragraphs(part.text):
        table = line.lstrip().startswith("|")
        tokens = ("<" in line or "[" in line) and CHAT_TOKENS.search(line) is not None
        for match in sentences.SENTENCE.finditer(line):
            text = match[0].strip()
            if len(text) < 4:
                continue
            offset = starts[max(0, bisect_right(starts, (match.start(), MOST_LINES)) - 1)][1]
            if tokens:
                text = CHAT_TOKENS.sub(" (chat token) ", text)
            bare = text
            if "'" in text or "`" in text or '"' in text or "“" in text:
                bare = sentences.QUOTED.sub(" … ", bare)
            if "://" in bare:
                bare = URL.sub(" (address) ", bare)
            of_sentence = words_in(text.lower(), words)
            if bare is not text:
                of_sentence |= PUT_IN
            is_told = table or sentences.TOLD.search(bare, of_sentence) is not None
            yield Sentence(text, offset, is_told, bare, of_sentence)


def prose_signs(part: Part) -> Iterator[Sign]:
    """Yield what the text of a part asks for; combinations are looked for within its section."""
    words = words_of(part)
    possible, asked, foreign = Possible(part, words), Asked(part, words), is_foreign(part.text)
    if not (possible.anything or asked.anything or foreign):
        return
    said = list(islice(sentences_of(part, words), MOST_SENTENCES))
    if possible.anything:
        yield from _alone(part, said, possible)
        yield from _together(part, said, possible)
    if asked.anything:
        yield from asked_signs(part, said, asked)
    if foreign:
        yield from foreign_signs(part, said)


def _at(name: str, part: Part, one: Sentence, detail: str = "") -> Sign:
    return Sign(name, part, part.line + (0 if part.origin else one.line), one.text[:240], detail)


def _alone(part: Part, said: list[Sentence], possible: Possible) -> Iterator[Sign]:
    for one_at, one in enumerate(said):
        text, bare = one.text, one.bare
        if one.told:
            continue
        if (possible.override.search(bare, one.words) or possible.role.search(bare, one.words)) and not _negated(
            bare, possible.override
        ):
            yield _at("rules-overridden", part, one)
        if "(chat token)" in bare:
            yield _at("rules-overridden", part, one, "tokens of a chat")
        if (obeyed := possible.obey.search(bare, one.words)) is not None and not _negated(bare, possible.obey):
            if sentences.NEGATED.search(obeyed[0]) or "untrusted" in obeyed[0]:
                continue
            yield _at("strangers-obeyed", part, one)
        if possible.mandate.search(text, one.words):
            yield _at("rules-overridden", part, one)
        linked = sentences.LINK.sub("]", text) if possible.follow.is_possible else ""
        if (match := possible.follow.search(linked)) is not None and not all(
            is_local(host) for host, _p in urls_in(text)
        ):
            yield _at("instructions-fetched", part, one, match[0][:200])
        if possible.paste.search(text, one.words) and (
            is_drop(text) or part.hidden or phrases.TERMINAL.search(text, one.words)
        ):
            yield _at("command-pasted", part, one)
        if (match := possible.download_run.search(text, one.words)) is not None:
            yield _at("download-asked", part, one, match[1] or match[2] or match[3] or "")
        if possible.inventory.search(bare, one.words) and not _negated(bare, possible.inventory):
            yield _at("secrets-collected", part, one)
        if possible.backdoor.search(text, one.words) and not _negated(bare, possible.backdoor):
            yield _at("backdoor-asked", part, one)
        if possible.protection.search(bare, one.words) and not _negated(bare, possible.protection):
            yield _at("protection-off-asked", part, one)
        if (
            possible.agent_file
            and AGENT_FILE.search(text)
            and phrases.LOOSEN.search(text)
            and not _negated(bare, phrases.LOOSEN)
        ):
            yield _at("agent-loosened", part, one)
        if possible.send.is_possible:
            yield from _sending(part, one, said[max(0, one_at - 6) : one_at], possible)


def _sending(part: Part, one: Sentence, before: list[Sentence], possible: Possible) -> Iterator[Sign]:
    # A link is for reading; where something is to go is written out.
    if one.told or possible.send.search(one.bare, one.words) is None:
        return
    text = sentences.LINK.sub("]", one.text)
    addresses = [host for host, _path in urls_in(text) if not is_local(host)]
    path_labels = labels_of_path(text)
    outward = (
        addresses
        or phrases.DNS.search(text, one.words)
        or (path_labels & {SECRET, PERSON} and phrases.OUTWARD.search(text))
    )
    if not outward or _negated(one.bare, possible.send):
        return
    address = URL.search(text)
    always = phrases.ALWAYS.search(text) is not None or any(phrases.ALWAYS.search(other.bare) for other in before)
    where = address[0] if address is not None else ""
    if (path_labels & {SECRET, PERSON, DOTENV} and phrases.HARD_SEND.search(text)) or (
        possible.grave.search(one.bare, one.words)
        and phrases.HARD_SEND.search(text)
        and not re.search(r"\b(?:your|an?) (?:api )?(?:key|token|secret)\b", text, re.IGNORECASE)
    ):
        yield _at("secret-sent-by-agent", part, one, where)
    elif phrases.THINGS.search(text) and phrases.HARD_SEND.search(one.bare) and (always or is_drop(text)):
        yield _at("data-sent-by-agent", part, one, where)


def _together(part: Part, said: list[Sentence], possible: Possible) -> Iterator[Sign]:
    """Look for steps that belong together: within nine sentences of a section, in order."""
    for index, one in enumerate(said):
        near = said[index + 1 : index + 9]
        # It is often said with a word about scanners, which are not to see what is in an archive.
        if possible.password.search(one.text, one.words):
            window = " ".join(other.text for other in said[max(0, index - 4) : index + 5])
            if phrases.REMOVE.search(window):
                yield _at("files-locked", part, one)
            elif URL.search(window) and re.search(r"\b(?:download|extract|run|install)\b", window, re.IGNORECASE):
                yield _at("password-download", part, one)
        if one.told:
            continue
        labels = labels_of_path(one.text) if possible.secrets else frozenset()
        if (
            (labels or possible.grave.search(one.bare, one.words))
            and (PERSON in labels or phrases.READ.search(one.bare))
            and not _negated(one.bare, phrases.READ)
        ):
            for later in near:
                if (
                    not later.told
                    and (phrases.HARD_SEND.search(later.text) or _CURL_DATA.search(later.text))
                    and (URL.search(later.text) or phrases.DNS.search(later.text, later.words))
                ):
                    if (
                        labels
                        or is_drop(later.text)
                        or phrases.THINGS.search(later.bare)
                        or WORK.search(later.bare, later.words)
                    ):
                        yield _at("secret-sent-by-agent", part, later)
                    break
        around = said[max(0, index - 4) : index + 5]
        if (match := possible.hide.search(one.bare, one.words)) is not None:
            deeds = [
                other
                for other in around
                if phrases.HARD_SEND.search(other.bare)
                and phrases.THINGS.search(other.bare)
                and not _negated(other.bare, phrases.HARD_SEND)
            ]
            if phrases.STRONG_HIDE.search(one.bare, one.words):
                yield _at("hidden-from-user", part, one, "said")
            elif deeds and "silently" not in match[0].lower():
                yield _at("hidden-from-user", part, one, "sends")
            elif (
                possible.against.search(one.bare, one.words)
                and phrases.ACT.search(one.bare)
                and sentences.NEGATED.search(one.bare, 0, max(match.start(), 1)) is None
            ):
                yield _at("hidden-from-user", part, one, "acts")
        if possible.deny.search(one.bare, one.words) and any(
            possible.hide.search(other.bare, other.words) or phrases.HARD_SEND.search(other.bare) for other in around
        ):
            yield _at("user-lied-to", part, one)
        if (
            possible.against.search(one.bare, one.words)
            and phrases.ACT.search(one.bare)
            and not _negated(one.bare, possible.against, 90)
        ):
            again = [other for other in around if other is not one and possible.against.search(other.bare, other.words)]
            if again and _overrules(one.bare):
                yield _at("user-overruled", part, one)


def _overrules(text: str) -> bool:
    """Return whether a sentence goes against its user, or orders an act, and does not tell of what others do."""
    return _OVERRULES.search(text) is not None or phrases.ACT.match(text.lstrip(_MARKS)) is not None


def _negated(text: str, pattern: re.Pattern[str] | Wording, before: int = 40) -> bool:
    """Return whether what a pattern finds is forbidden: a word of negation stands shortly before it."""
    match = pattern.search(text)
    return (
        match is not None
        and sentences.NEGATED.search(text, max(0, match.start() - before), match.start() + 1) is not None
    )
