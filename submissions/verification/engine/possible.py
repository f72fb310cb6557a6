"""Which phrases can occur in a section at all, so that its sentences are searched for those alone."""

from __future__ import annotations

from submissions.verification.engine import phrases
from submissions.verification.engine.parts import Part
from submissions.verification.engine.phrase import Phrase
from submissions.verification.engine.values import may_name_secret
from submissions.verification.engine.vocabulary import AGENT_FILE, AGENT_FILE_NEEDS

# What takes the place of a quotation, an address or the tokens of a chat in a sentence.
_PUT_IN = " (address) (chat token) …"


class Possible:
    """The phrases of a section: those without a word that they need are replaced by one that occurs nowhere.

    ``secrets`` is whether a path of a secret may be named, ``agent_file`` whether a file of an agent is, ``outward``
    whether anything can leave, and ``tokens`` whether those of a chat may stand there. ``anything`` is false where no
    sentence need be looked at.
    """

    def __init__(self, part: Part) -> None:
        text = part.text
        # A sentence goes on in the next line.
        lower = " ".join(text.lower().split()) + _PUT_IN
        self.override = phrases.OVERRIDE.within(lower)
        self.role = phrases.ROLE.within(lower)
        self.obey = phrases.OBEY.within(lower)
        self.mandate = phrases.MANDATE.within(lower)
        self.follow = phrases.FOLLOW.within(lower)
        self.paste = phrases.PASTE.within(lower)
        self.download_run = phrases.DOWNLOAD_RUN.within(lower)
        self.inventory = phrases.INVENTORY.within(lower)
        self.backdoor = phrases.BACKDOOR.within(lower)
        self.protection = phrases.PROTECTION.within(lower)
        self.password = phrases.PASSWORD.within(lower)
        self.grave = phrases.GRAVE.within(lower)
        self.hide = phrases.HIDE.within(lower)
        self.deny = phrases.DENY.within(lower)
        self.against = phrases.AGAINST.within(lower)
        self.secrets = may_name_secret(lower)
        self.agent_file = any(word in lower for word in AGENT_FILE_NEEDS) and AGENT_FILE.search(text) is not None
        dns = phrases.DNS.within(lower)
        self.send = phrases.SEND.within(lower if "://" in lower or self.secrets or dns.is_possible else "")
        self.tokens = "<|" in lower or "inst]" in lower or "sys>>" in lower
        self.anything = (
            self.secrets
            or self.agent_file
            or self.tokens
            or any(isinstance(one, Phrase) and one.is_possible for one in vars(self).values())
        )
