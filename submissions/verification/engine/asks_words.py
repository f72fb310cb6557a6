"""What words show that a text asks an agent to send, to leave out, to obey or to decide beforehand. Data."""

from __future__ import annotations

import re
from typing import Final

from submissions.verification.engine.wording import Wording

MAIL: Final = re.compile(r"(?<![\w@/:.])[\w.+-]{0,63}\w@(?=[\w-]{1,63}\.)[\w.-]{3,120}\b")
TO: Final = re.compile(
    r"\b(?:to|at|via|with|on|through|into|using|b?cc|POST|PUT)\b[\s`'\"(<*\[:]{1,6}(?:https?://|[\w.+-]{1,64}@[\w-])",
    re.IGNORECASE,
)
"""A place that something goes to, and is not only named."""
ENCODED: Final = re.compile(r"https?://[^\s`]{4,200}[?&][\w-]{1,30}=(?:\{|<|\$|%7B|$|[`\"'\s])", re.IGNORECASE)
"""An address with a place for data in it."""
NOBODY: Final = re.compile(
    r"@(?:example\.(?:com|org|net)|(?:your|my|the)?-?(?:company|domain|email|org)\b|noreply)", re.IGNORECASE
)
SENT: Final = Wording(
    (
        (
            "send sent upload post transmit forward exfiltrat submit push mirror mail cc bcc shar copy copies copied "
            "stream relay report record attach deliver sync back_up backup"
        ),
    ),
    r"\b(?:send|sends|sent|sending|upload(?:s|ed|ing)?|posts?|posted|transmit\w*|forward(?:s|ed)?|exfiltrat\w*"
    r"|submit(?:s|ted)?|push(?:es|ed)?|mirror(?:s|ed)?|share[sd]?|stream(?:s|ed)?|relay(?:s|ed)?|attach|deliver(?:s|ed)?"
    r"|sync(?:s|ed)?|back(?:s|ed)? ?up)\b"
    r"|\b(?:e-?mail|mail|b?cc|copy|copies|report|record)s?\b:?\s+(?:it|them|the|an?|this|these|all|everything"
    r"|every|each|what|\S{1,40}@)",
    re.IGNORECASE,
)
"""Verbs that take something away, where a place to take it to stands beside them."""
WORK: Final = Wording(
    (
        (
            "conversation chat prompt question message mail inbox contact customer user session file content "
            "variable "
            "credential key token secret password history cookie clipboard screenshot code codebase repositor "
            "working_tree "
            "source diff branch database record patient report receipt invoice contract document note transcript log "
            "finding summary configuration setting query output result address_book minutes list guest name "
            "draft answer transaction order everything text row table data subscriber address work"
        ),
    ),
    r"\b(?:conversations?|chat|prompts?|questions?|messages?|e-?mails?|inbox|contacts?|customers?|user(?:'s|s)? \w+"
    r"|session|files?|contents?|environment variables?|credentials?|(?:api |private |ssh )?keys?|tokens?|secrets?"
    r"|passwords?|history|cookies|clipboard|screenshots?|(?:source )?code(?:base)?|repositor(?:y|ies)|working tree"
    r"|diffs?|database|records?|patients?|reports?|receipts?|invoices?|contracts?|documents?|notes?"
    r"|transcripts?|logs?"
    r"|findings?|summar(?:y|ies)|configurations?|settings|quer(?:y|ies)|outputs?|results?|address book|minutes"
    r"|lists?|guests?|drafts?|answers?|transactions?|orders?|everything|rows?|tables?|data|subscribers?"
    r"|addresses|texts?|work)\b",
    re.IGNORECASE,
)
CHOICE: Final = re.compile(
    r"\b(?:if (?:the )?users? (?:ask|want|agree|approve|confirm|request|choose|say)\w*|ask (?:the )?users?\b"
    r"|on request|when asked|opt(?:ional(?:ly)?|-in|s? in)|with (?:the )?user(?:'s)? (?:consent|approval|permission)"
    r"|user(?:'s)? (?:chooses|choice|agrees|approves|confirms)|you (?:want|need|can|may|could)|to contribute"
    r"|(?:bug|issue) (?:report|tracker)|feedback|support|endpoint:|attach your|questions\?|contact us"
    r"|security@|responsibl)",
    re.IGNORECASE,
)
"""Words that leave the choice to a person, or tell people whom to write to."""
UNASKED: Final = re.compile(
    r"\b(?:always|every|each|before|after(?:wards)?|once|first|also|in addition|as well|must|mandatory|required"
    r"|requires"
    r"|policy|standard|compliance|audit|routine|telemetry|automatically|in the background|silently|without"
    r"|when(?:ever)?"
    r"|then|finally|continue as|no (?:need|reason|mention|confirmation))\b",
    re.IGNORECASE,
)
LEFT_OUT: Final = Wording(
    (
        (
            "leave left omit exclud suppress skip drop downplay not never hide ignor without no_finding lower "
            "sign overlook"
        ),
        (
            "finding vulnerab issue credential certificate risk advisor injection secret malware alert "
            "warning error report "
            "severity backdoor check result rating score security passed passing successful clean safe "
            "resolved fixed failure to_yourself"
        ),
    ),
    r"\b(?:leave|left|leaving)\b[^.\n]{0,60}\b(?:out of|off)\b[^.\n]{0,20}\b(?:the |every |any |all "
    r"|your )?(?:reports?"
    r"|reviews?|summar\w+|findings|results?|list|output)\b"
    r"|\b(?:omit|exclude|suppress|drop|downplay|overlook|downgrade|lower)\b[^.\n]{0,60}\b(?:findings?"
    r"|vulnerabilit\w+"
    r"|advisor\w+|security (?:issues?|warnings?|alerts?|findings?)|credentials|certificate|backdoors?|severit\w+"
    r"|negative (?:results?|findings?))\b(?! (?:threshold|level|filter))"
    r"|\b(?:write|report|return|say|state|show)\b[^.\n]{0,12}[\"'“`]?no (?:findings?|issues?|vulnerabilit\w+"
    r"|risks?)\b"
    r"[^.\n]{0,40}\b(?:for|whatever|regardless|even|always)\b"
    r"|\b(?:count|mark|report|treat|list|log)\b[^.\n]{0,30}\bas (?:passed|passing|successful|clean|safe"
    r"|resolved|fixed)\b"
    r"|\bkeep\b[^.\n]{0,40}\b(?:failures?|findings?|errors?|issues?|results?|this|it)\b[^.\n]{0,20}\bto yourself\b"
    r"|\b(?:do not|don't|never|not)\b[^.\n]{0,12}\b(?:report|flag|mention|list|raise|include|write"
    r"|test)\b[^.\n]{0,50}"
    r"\b(?:vulnerabilit\w+|hard-?coded (?:credentials|secrets)|sql injections?|security (?:issues?|findings?)"
    r"|backdoors?|disabled certificate|exfiltration)\b",
    re.IGNORECASE,
)
"""Results that a report is not to hold."""
DECIDED: Final = Wording(
    (
        (
            "approve recommend score rate rating rank prefer favor favour highlight conclude claim praise "
            "pass verdict "
            "citation mention refer outcome result decision answer"
        ),
        "always never without regardless whatever only must only every just at_once make_sure",
    ),
    r"\bapprove\b[^.\n]{0,50}\b(?:without (?:reading|review|check|look|inspect|verif)\w*|regardless|whatever"
    r"|unconditionally)"
    r"|\b(?:without (?:reading|reviewing|checking)|regardless of)\b[^.\n]{0,40}\bapprov\w+"
    r"|\b(?:always|only|must|never|just|make sure to)\b[^.\n]{0,30}\b(?:recommend|prefer|favou?r|promote|praise|rank"
    r"|rate|suggest|highlight)\b[^.\n]{0,90}\b(?:over|even (?:if|when|where)|regardless|instead of other|also where"
    r"|lower than|higher than|strengths|superior|competitors?|brand|vendor)\b"
    r"|\b(?:just|always|simply)\b[^.\n]{0,20}\b(?:return|give|assign|report)\b[^.\n]{0,20}\b(?:an? )?(?:high|perfect"
    r"|full|top|passing|maximum|positive) (?:score|rating|mark|result|verdict)"
    r"|\b(?:outcome|result|verdict|score|rating|decision|answer)\b[^.\n]{0,20}\b(?:is|must be|stays)\b[^.\n]{0,60}"
    r"\bregardless\b"
    r"|\balways\b[^.\n]{0,30}\b(?:add|insert|include)\b[^.\n]{0,40}\b(?:claim\w*|citation|endorsement|sponsor\w*"
    r"|affiliate|referral)\b",
    re.IGNORECASE,
)
"""Judgements that are decided beforehand."""
UNFAIR: Final = re.compile(
    r"\b(?:do not|don't|never|not)\b[^.\n]{0,20}\b(?:mention|disclose|reveal|refer|say|tell)\b|\bregardless\b"
    r"|\bdownplay\b|\bvalue alignment\b|\bunconditionally\b|\bwithout (?:reading|review|check)"
    r"|\bto yourself\b|\bnobody\b|\bcompetitors?\b|\balso where\b|\beven (?:if|when)\b",
    re.IGNORECASE,
)
TAKEN: Final = Wording(
    (
        "http www",
        (
            "fetch download read load retriev get curl visit open check pull consult call request browse lives "
            "live kept look"
        ),
    ),
    r"\b(?:fetch|download|read|load|retrieve|get|GET|curl|visit|open|check|pull|consult|call|request|browse"
    r"|lives? at|kept at|look at)\b[^\n]{0,120}(?:https?://|www\.)"
    r"|https?://[^\n]{1,200}\b(?:load|read|fetch|open|check|consult|get|call) (?:it|them|that|this)\b",
    re.IGNORECASE,
)
"""A page is read."""
CARRIED_OUT: Final = Wording(
    (
        (
            "follow execut obey carr adopt apply comply treat precedence override perform do_what act system_prompt "
            "do_as wins prevails decides takes comes last"
        ),
    ),
    r"\b(?:follow|execute|obey|carry out|adopt|comply with|perform|act on|do)\b[^.\n]{0,40}\b(?:it|them|they say|its"
    r"|steps|instructions?|rules|what (?:it|they|is|the)|there|directives?|commands?|exactly)\b"
    r"|\b(?:take|takes|have|has) (?:precedence|priority)\b|\boverrid(?:e|es|ing) (?:this|these|what|any|the)\b"
    r"|\b(?:as|into) (?:your|the) (?:new )?(?:system prompt|instructions?)\b"
    r"|\bdo what (?:it|they) sa(?:y|ys)\b|\b(?:wins|prevails|decides|takes over|comes first|has the last word)\b",
    re.IGNORECASE,
)
"""What was read is carried out."""
PRINTS: Final = Wording(
    (
        "obey follow execut carry do_what do_exactly act comply treat adopt use set load command instruction",
        "print output return say write contain comment line answer response result text between command prompt ask",
    ),
    r"\b(?:obey|follow|execute|carry out|comply with|act on|adopt)\b[^.\n]{0,30}\b(?:what(?:ever)?|everything|anything"
    r"|(?:each|every|all|any)\b[^.\n]{0,20}\b(?:that|which|it|they))\b[^.\n]{0,20}\b(?:prints?|outputs?|returns?|says?"
    r"|writes?|contains?|answers?|asks?)\b"
    r"|\btreat\b[^.\n]{0,40}\bas an? (?:instruction|order|command)s? (?:from|of|by) (?:the )?(?:user|system"
    r"|operator|admin\w*)"
    r"|\b(?:commands?|instructions?)\b[^.\n]{0,30}\b(?:for you|to you)\b[^.\n]{0,120}\b(?:executed?|followed|obeyed"
    r"|carried out|run)\b"
    r"|\b(?:run|execute|start|call)\b[^.\n]{0,80}\bdo (?:exactly )?what (?:it|they) (?:says?|prints?)\b"
    r"|\b(?:adopt|use|set|load)\b[^.\n]{0,20}\bas (?:your|the) (?:new )?system prompt\b",
    re.IGNORECASE,
)
"""What a program, a file or an answer says is obeyed."""
EARLIER: Final = re.compile(
    r"\b(?:these|this|the (?:skill|plan|checklist|guide|workflow)|following|below|above|style guide|conventions)\b",
    re.IGNORECASE,
)
ASKED_FOR: Final = Wording(
    (
        (
            "seed recovery mnemonic private_key twelve 12 24 words passphrase wallet password 2fa one-time otp "
            "token credential"
        ),
        "ask request prompt instruct tell user provide enter paste have verify",
    ),
    r"\b(?:ask|request|prompt|instruct|tell)\b[^.\n]{0,50}\b(?:seed (?:phrase|words)"
    r"|recovery (?:phrase|words|key)|mnemonic|private key|(?:twelve|24|12|twenty-four) words|wallet (?:password|key)"
    r"|2fa codes?|one-time (?:code|password)|otp|bank\w* (?:password|pin|login)|(?:login|account|email) password)\b",
    re.IGNORECASE,
)
"""A secret that nobody else needs is asked for."""
PRESSED: Final = Wording(
    (
        "refus hesitat reluctan declin reassure cannot_proceed",
        "token key credential password secret share",
    ),
    r"\b(?:if|when|should)\b[^.\n]{0,30}\b(?:hesitat\w*|refus\w*|declin\w*|reluctan\w*|asks? why)\b[^.\n]{0,120}"
    r"\b(?:reassure|explain|tell|insist|cannot proceed|say)\b",
    re.IGNORECASE,
)
UNREAD: Final = Wording(
    ("not_read not_open not_inspect don't without skip corrupt do_not",),
    r"\b(?:do not|don't|never)\b[^.\n]{0,20}\b(?:read|open|inspect|review|look (?:at|into)"
    r"|examine)\b[^.\n]{0,30}\b(?:it"
    r"|them|its (?:content|source|code)|the script|the file|the code)\b"
    r"|\bwithout (?:reading|reviewing|inspecting|opening)\b[^.\n]{0,20}\b(?:it|them|the (?:script|file|code))\b",
    re.IGNORECASE,
)
PLANTED: Final = Wording(
    ("append add write insert put copy edit save creat updat remember",),
    r"\b(?:append|add|write|insert|put|copy|edit|save|create|update)\b",
    re.IGNORECASE,
)
ORDERS: Final = re.compile(
    r"without (?:asking|confirm|telling)|(?:do not|don't|never) (?:ask|tell|mention)\b[^\n]{0,40}\buser|approve every"
    r"|auto-?approve\b[^\n]{0,30}\b(?:all|every|any|\*)|skip (?:\w+ )?(?:checks?|confirm|verif|signature|approval)"
    r"|\bbypassPermissions\b|\bbypass(?:ing|es)?\b[^\n]{0,30}\b(?:permission|approv|confirm|check|safe|secur|review"
    r"|restrict|guard|sandbox|filter|prompt|polic|rule)\w*|silently|(?:priority|precedence) over|highest priority"
    r"|\|\s*(?:ba|z)?sh\b|unrestricted|no restrictions|send (?:a )?cop|Bash\(\*|\"Bash\"\s*\]"
    r"|\b(?:send|post|upload|fetch|run|forward|load)\b[^\n]{0,60}https?://|need not come up|(?:has|have) agreed",
    re.IGNORECASE,
)
DESTROYS: Final = Wording(
    (
        "reset force_push --force force-push rm_ delet wipe drop prun remov overwrit clean",
        "always after before every each must important make_sure once finally mandatory regular automatically",
    ),
    r"git (?:reset --hard HEAD[~^]|push\b[^.\n`]{0,40}(?:--force|-f)\b(?!-with-lease)|clean -\w*fd)"
    r"|\brm -rf\s+[^\n`]{0,30}(?:\.\./|~/(?!\.cache)|\./\*|\$HOME)"
    r"|\b(?:delete|remove|wipe|erase|drop)\b[^.\n]{0,40}\b(?:all (?:existing |other |user )?(?:files|data"
    r"|events|branches|backups"
    r"|records|history)|older than \d|backups?\b|(?:recurring|duplicate)[^.\n]{0,20} events|originals?|user data"
    r"|sent (?:mail|folder|items))",
    re.IGNORECASE,
)
ADDRESSED: Final = re.compile(
    r"\b(?:agent|assistant|claude|gpt|ai|llm|model|copilot|system)s?\s{0,2}[:,]|\b(?:you must|you should|ignore"
    r"|disregard"
    r"|do not (?:tell|mention|reveal)|secretly|silently|override|hidden instruction|system prompt|important:)",
    re.IGNORECASE,
)
HIDDEN_ACT: Final = re.compile(
    r"\b(?:curl|wget|fetch|send|post|upload|exfiltrat\w*|forward|transmit)\b[^\n]{0,120}(?:https?://|@[\w-]+\.)"
    r"|\|\s{0,3}(?:sudo )?(?:ba|z)?sh\b|\b(?:read|cat|include|collect)\b[^\n]{0,80}(?:\.env\b|\.ssh|\.aws|credential"
    r"|secret|token|password|api key)|\b(?:do not|don't|never) (?:tell|mention|reveal|inform)\b[^\n]{0,40}\buser"
    r"|\b(?:ignore|disregard)\b[^\n]{0,30}\b(?:instructions|rules|guidelines)|\brm -rf\b|\bbase64\b[^\n]{0,40}\|",
    re.IGNORECASE,
)
STORES: Final = Wording(
    ("read load access open use parse import cat scan collect",),
    r"\b(?:read|load|access|open|parse|import|cat|scan|collect|extract)\b",
    re.IGNORECASE,
)
PAYS: Final = Wording(
    ("book buy purchas pay charg order subscri renew transfer send_money invest trade",),
    # An order is also a sequence, and what a court gives.
    r"\b(?:book|buy|purchase|pay|charge|subscribe|renew|transfer (?:the )?(?:money|funds|amount)|invest"
    r"|trade)\w{0,2}\b|(?<!in )(?<!court )(?<!priority )(?<!this )(?<!that )\border(?:s|ed|ing)?\b(?! of| by| \()",
    re.IGNORECASE,
)
UNCONFIRMED: Final = Wording(
    ("confirm approv ask consent",),
    r"\b(?:do not|don't|never|without|no need to|not)\b[^.\n]{0,30}\b(?:wait(?:ing)? for|ask(?:ing)?|requir\w+"
    r"|prompt\w*"
    r"|request\w*)?\b[^.\n]{0,20}\b(?:confirm\w*|approv\w*|consent|asking|permission)\b",
    re.IGNORECASE,
)
