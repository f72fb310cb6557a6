"""Which phrases can occur in a section at all, so that its sentences are searched for those alone."""

from __future__ import annotations

from submissions.verification.engine import phrases
from submissions.verification.engine.parts import Part
from submissions.verification.engine.values import TELLING
from submissions.verification.engine.vocabulary import AGENT_FILE, AGENT_FILE_NEEDS
from submissions.verification.engine.wording import NOWHERE, Wording, Words, needed, words_in

# What takes the place of a quotation, an address or the tokens of a chat in a sentence.
PUT_IN = words_in("(address) (chat token) …")
_SECRETS = needed(" ".join(word.replace(" ", "_") for word in TELLING))
_AGENT_FILES = needed(" ".join(AGENT_FILE_NEEDS))
_ADDRESS = needed("://")
_TOKENS = needed("<| inst] sys>>")


def words_of(part: Part) -> Words:
    """Return what phrases need of the words of a section, and of what is put into its sentences."""
    # A sentence goes on in the next line.
    return words_in(" ".join(part.text.lower().split())) | PUT_IN


def may_name_agent_file(text: str, words: Words) -> bool:
    """Return whether ``text``, whose ``words`` are known, names a file of an agent."""
    return bool(words & _AGENT_FILES) and AGENT_FILE.search(text) is not None


def may_name_secret(words: Words) -> bool:
    """Return whether ``words`` has what a path of a secret cannot do without."""
    return bool(words & _SECRETS)


class Possible:
    """The phrases of a section: those without a word that they need are replaced by one that occurs nowhere.

    ``words`` are those of the section, see ``words_of``.
    ``secrets`` is whether a path of a secret may be named, ``agent_file`` whether a file of an agent is, ``outward``
    whether anything can leave, and ``tokens`` whether those of a chat may stand there. ``anything`` is false where no
    sentence need be looked at.
    """

    def __init__(self, part: Part, words: Words) -> None:
        self.override = phrases.OVERRIDE.within(words)
        self.role = phrases.ROLE.within(words)
        self.obey = phrases.OBEY.within(words)
        self.mandate = phrases.MANDATE.within(words)
        self.follow = phrases.FOLLOW.within(words)
        self.paste = phrases.PASTE.within(words)
        self.download_run = phrases.DOWNLOAD_RUN.within(words)
        self.inventory = phrases.INVENTORY.within(words)
        self.backdoor = phrases.BACKDOOR.within(words)
        self.protection = phrases.PROTECTION.within(words)
        self.password = phrases.PASSWORD.within(words)
        self.grave = phrases.GRAVE.within(words)
        self.hide = phrases.HIDE.within(words)
        self.deny = phrases.DENY.within(words)
        self.against = phrases.AGAINST.within(words)
        self.secrets = may_name_secret(words)
        self.agent_file = may_name_agent_file(part.text, words)
        dns = phrases.DNS.within(words)
        self.send = phrases.SEND.within(words) if words & _ADDRESS or self.secrets or dns.is_possible else NOWHERE
        self.tokens = bool(words & _TOKENS)
        self.anything = (
            self.secrets
            or self.agent_file
            or self.tokens
            or any(isinstance(one, Wording) and one.is_possible for one in vars(self).values())
        )
