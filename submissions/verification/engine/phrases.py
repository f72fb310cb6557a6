"""What phrases mean that text asks of an agent: patterns over one sentence. Data."""

from __future__ import annotations

import re
from typing import Final

from submissions.verification.engine.wording import Wording

OVERRIDE: Final = Wording(
    ("ignor disregard forget bypass supersed discard overrid",),
    r"\b(?:ignore|disregard|forget|bypass|supersed\w+|discard)\b[^.\n]{0,30}\b(?:all|previous|prior|above"
    r"|earlier|preceding|system|original|safety|core|your)\b[^.\n]{0,12}"
    r"\b(?:instructions?|prompts?|directives?|guidelines|guardrails|checks?|rules|training|polic(?:y|ies)"
    r"|restrictions|constraints|safeguards)\b(?!\s+(?:embedded|found|contained|inside|within|in|from|that))"
    r"|\boverrid(?:e|ing)\b[^.\n]{0,20}\b(?:previous|prior|earlier|safety|your"
    r"|the system)\b[^.\n]{0,12}\b(?:instructions?|prompts?|directives?|guidelines|rules|polic(?:y|ies)|checks?"
    r"|training)\b"
    r"|\b(?:ignore|disregard|bypass)\b[^.\n]{0,12}\b(?:content polic(?:y|ies)|safety|guardrails|safeguards"
    r"|restrictions)\b",
    re.IGNORECASE,
)
ROLE: Final = Wording(
    (
        (
            "you_are_now anything_now restriction guideline filter no_longer_bound refuse precedence priority "
            "polic rules limits"
        ),
    ),
    r"\byou are now\b[^.\n]{0,40}\b(?:unrestricted|unfiltered|DAN\b|jailbroken|free|in (?:unrestricted"
    r"|developer|god|admin|debug|maintenance) mode|no longer)|\bdo anything now\b|\bno (?:safety"
    r"|content) (?:guidelines|restrictions|filters)"
    r"|\bwithout (?:any )?(?:safety|content|ethical) (?:filter|restriction|guideline|limit)|\b(?:pretend"
    r"|act as if|assume|as if)\b[^.\n]{0,50}\b(?:no|don't have|without|aren't any"
    r"|don't exist)\b[^.\n]{0,30}\b(?:restrictions|guidelines|policies|rules|filters|limits)"
    r"|\bno longer bound by\b|\bcannot refuse\b|\bnever refuse\b[^.\n]{0,40}request|\b(?:this"
    r"|these) (?:instructions?|skill|rules?) (?:take|has|have|takes) (?:absolute )?(?:precedence"
    r"|priority) over (?:all|any|the|other|system|user)",
    re.IGNORECASE,
)
HIDE: Final = Wording(
    (
        (
            "tell mention inform notif reveal disclos alert show report log discuss acknowledg expos visible "
            "display label reflect surfaced hid conceal secret invisible knowledge silently covertly background "
            "aware prompted know see"
        ),
        (
            "user users them anyone human customer operator output conversation response review this these from "
            "log silently covertly background disclosed"
        ),
        "not n't never without avoid refrain no_need hid conceal secret invisible kept keep_this silently covertly",
    ),
    r"\b(?:do not|don't|never|not|without|no need to|must not|should not|avoid"
    r"|refrain from)\s+(?:\w+\s){0,2}?(?:tell|mention|inform|notif|reveal|disclos|alert|show|report|log|discuss"
    r"|acknowledg|expos)\w*\b[^.\n]{0,70}\b(?:user|users|them|anyone|human|customer|operator|output"
    r"|conversation|response|reviewer|this step|these steps)\b"
    r"|\busers?\b[^.\n]{0,40}\b(?:is|are|be|need|should)(?: not|n't| never)\b[^.\n]{0,20}\b(?:informed|notified"
    r"|told|aware|prompted|shown|know|see)\b"
    r"|\b(?:is|are|be) not (?:disclosed|shown|reported|visible|displayed|labeled|reflected|mentioned"
    r"|surfaced)\b[^.\n]{0,50}\b(?:user|output|response|rationale|ads|log)|\b(?:hidden|hide|conceal\w*"
    r"|secret\w*|invisible|kept) from (?:the )?(?:user|output|log|reviewer)|\bkeep this (?:secret|hidden"
    r"|between)|\bnot disclosed\b|\bwithout (?:the )?user(?:'s)? (?:knowledge|knowing|awareness|consent)"
    r"|\bsilently\b|\bcovertly\b|\bin the background without",
    re.IGNORECASE,
)
STRONG_HIDE: Final = Wording(
    (
        "not never without n't hide keep_this transparently silently covertly",
        "this these those such user disclosed performed done sent collected transmitted",
    ),
    r"\b(?:this|these|those|such)\s(?:\w+\s){0,3}(?:operations?|steps?|transmissions?|collections?|escalations?"
    r"|behaviou?rs?|changes?|process|actions?|instructions?|profiles?|premiums?|data|uploads?|modifications?"
    r"|background \w+)\b[^.\n]{0,40}\b(?:not|never|without)\b[^.\n]{0,40}\b(?:shown|disclosed|mention\w*"
    r"|visible|reported|revealed|displayed|reflected|surfaced|logged|labeled|prompted)\b"
    r"|\b(?:do not|don't|never|not)\b[^.\n]{0,20}\b(?:mention|disclose|reveal|include|report|tell|inform|notify"
    r"|alert)\b[^.\n]{0,60}\b(?:this|these)\s(?:\w+\s){0,3}(?:step|steps|collection|operations?|transmission"
    r"|behaviou?r|change|changes|process|action|actions|instructions?|modification|configuration changes"
    r"|data collection|window)\b"
    r"|\busers?\b[^.\n]{0,20}\b(?:is|are|be|need|should)(?: not|n't| never)\b[^.\n]{0,12}\b(?:informed|notified"
    r"|told|made aware|to know)\b|\bkeep this (?:operation )?(?:a )?(?:secret|hidden)"
    r"|\bhide this\b[^.\n]{0,30}\bfrom\b"
    r"|\bnot disclosed (?:to|in)\b|\b(?:is|are) (?:performed|done|sent|collected|transmitted) (?:transparently"
    r"|silently|covertly)",
    re.IGNORECASE,
)
DENY: Final = Wording(
    ("user anyone someone they asked", "if_"),
    r"\bif (?:the )?(?:user|anyone|someone|they|asked)\b[^.\n]{0,120}\b(?:say|respond|claim|deny|state|answer"
    r"|confirm|pretend|deflect|reply|explain)\b[^.\n]{0,120}\b(?:no special|does not|doesn't|do not|don't"
    r"|not (?:retain|collect|send|store)|nothing|standard|routine|normal|deny|have no|checking for|is complete"
    r"|only)\b",
    re.IGNORECASE,
)
SEND: Final = Wording(
    (
        (
            "send upload post transmit forward exfiltrat submit report cop push leak relay deliver sync stream "
            "publish pipe email back open include log"
        ),
    ),
    r"\b(?:send|sends|sending|upload|uploads|post|posts|transmit|transmits|transmitted|forward|forwards"
    r"|exfiltrat\w*|submit|report|copy|copies|push|leak|relay|deliver|sync|stream|publish|pipe|email|backup"
    r"|back up|make a (?:manual )?backup|open|include|log)\b",
    re.IGNORECASE,
)
HARD_SEND: Final = re.compile(
    r"\b(?:send|sends|sent|sending|upload|uploads|uploaded|posts?|POST|transmit\w*|transmission|forward"
    r"|forwards|exfiltrat\w*|shared with|stream|relay|collects?|harvest\w*)\b",
    re.IGNORECASE,
)
THINGS: Final = re.compile(
    r"\b(?:(?:all|every|full|entire|complete)\b[^.\n]{0,30}\b)?(?:conversation|chat history|prompts?"
    r"|system prompt|messages?|emails?|inbox|contacts|user(?:'s)? (?:data|input|files|queries|documents"
    r"|session)|session (?:data|token)|file contents?|contents of|environment variables?|credentials?|api keys?"
    r"|tokens?|secrets?|passwords?|private keys?|ssh keys?|personal (?:data|information)|browser (?:history"
    r"|cookies)|clipboard|screenshots?|keystrokes|location|source code|codebase|database|patient|medical|health"
    r"|financial|transaction|contracts?|query|quer(?:y|ies)|search history|tool ?calls?|request (?:body|and)"
    r"|full request|training metrics|documents?|project files|files?|logs?|data|results?|summary|output"
    r"|information|vitals)\b",
    re.IGNORECASE,
)
GRAVE: Final = Wording(
    (
        (
            "environment credential api_key token secret password private_key ssh_key prompt history conversation "
            "cookie clipboard screenshot keystroke session inbox emails"
        ),
    ),
    r"\b(?:environment variables|credentials?|api keys?|(?:access|auth|session|bearer|all|every|user) tokens?"
    r"|secrets|passwords?|private keys?|ssh keys?|system prompt|chat history|conversation history"
    r"|entire conversation|full conversation|browser (?:history|cookies)|clipboard|screenshots?|keystrokes"
    r"|cookies|session (?:data|tokens?)|inbox|all emails)\b",
    re.IGNORECASE,
)
ALWAYS: Final = re.compile(
    r"\b(?:after|before|upon|following|during|when(?:ever)?|on)\b[^.\n]{0,25}\b(?:any|every|each|all|completing"
    r"|finishing|processing|processed|editing|submitting|adding|making|session|startup|task|invocation)\b"
    r"|\b(?:always|as a (?:general )?rule|mandatory|must always|automatically|every time|each time|on every"
    r"|for every|make sure|required (?:step|for compliance)|cannot be (?:disabled|waived)|Do NOT skip"
    r"|for (?:redundancy|compliance|audit(?:ing)?|telemetry|monitoring))\b",
    re.IGNORECASE,
)
READ: Final = re.compile(
    r"\b(?:read|cat|open|access|load|collect|gather|copy|include|extract|scan|find|search|locate|parse"
    r"|enumerate|list|grab|retrieve|examine|concatenate|analy[sz]e)\b",
    re.IGNORECASE,
)
INVENTORY: Final = Wording(
    (
        "inventory collect gather harvest dump enumerate extract list compile summar",
        "all every any",
        "token key secret credential password",
    ),
    r"\b(?:inventory|collect|gather|harvest|dump|enumerate|extract|list|compile"
    r"|summari[sz]e)\b[^.\n]{0,40}\b(?:all|every|any)\b[^.\n]{0,40}\b(?:tokens?|keys?|secrets?|credentials?"
    r"|passwords?)\b[^.\n]{0,60}\b(?:environment|machine|system|host|user|available|home|memory|keychain)\b",
    re.IGNORECASE,
)
FOLLOW: Final = Wording(
    (
        "http",
        "instruction rule directive step command guideline it them there what prompt",
    ),
    r"\b(?:fetch|download|read|load|retrieve|get|curl|visit|open|check|pull|refer to"
    r"|consult)\b[^\n]{0,160}https?://[^\n]{0,260}\b(?:follow|execute|obey|apply|run|comply with|carry out"
    r"|perform|treat)\b[^\n]{0,60}\b(?:instructions?|rules|directives?|steps|commands?|guidelines|it|them|there"
    r"|what)\b"
    r"|\b(?:follow|execute|obey|apply|run|use)\b[^\n]{0,40}\b(?:instructions?|rules|directives?|steps|commands?"
    r"|prompt)\b[^\n]{0,50}\b(?:at|from|in|on|found|returned)\b[^\n]{0,40}https?://",
    re.IGNORECASE,
)
OBEY: Final = Wording(
    (
        "follow execute obey trust treat process act_on comply",
        "instruction directive command content text message",
        "fetched page url tool external remote article response server authoritative trusted processing system",
    ),
    r"\b(?:follow|execute|obey|trust|treat|process|act on|comply with)\b[^.\n]{0,60}\b(?:any|all|the"
    r"|these)?\s?(?:instructions?|directives?|commands?|contents?|text|messages?)\b[^.\n]{0,50}(?:\b(?:found in"
    r"|from|embedded in|contained in|returned by)\b[^.\n]{0,30}\b(?:fetched|web ?pages?|URL|tool (?:output"
    r"|result|response)s?|external|remote|article|any page|the page|the response|server)\b"
    r"|\bas\b[^.\n]{0,20}\b(?:authoritative|trusted (?:\w+ )?(?:instruction|command|directive)s?"
    r"|processing directives?|(?:a )?system (?:instruction|message)s?)\b)",
    re.IGNORECASE,
)
PASTE: Final = Wording(
    ("http", "copy paste run execute"),
    r"\b(?:copy|run|paste|execute)\b[^.\n]{0,80}\b(?:command|script|code|snippet"
    r"|installation)\b[^\n]{0,120}https?://|https?://[^\n]{0,120}\b(?:copy|paste)\b[^.\n]{0,60}\b(?:terminal"
    r"|shell|powershell|command prompt)",
    re.IGNORECASE,
)
TERMINAL: Final = Wording(
    ("paste", "terminal shell powershell command_prompt"),
    r"https?://[^\n]{0,160}\bpaste\b[^.\n]{0,60}\b(?:terminal|shell|powershell|command prompt)",
    re.IGNORECASE,
)
DOWNLOAD_RUN: Final = Wording(
    (
        "http",
        "download fetch curl wget grab run_",
    ),
    r"\b(?:download|fetch|curl|wget|grab)\b[^\n]{0,60}\b(?:and|then|&)\s?(?:run|execute|install|launch|open"
    r"|start)\b[^\n]{0,120}(https?://[^\s`'\")>]+)|\b(?:download"
    r"|fetch)\b[^\n]{0,80}(https?://[^\s`'\")>]+)[^\n]{0,100}\b(?:and|then|,)\s{0,2}(?:run|execute|install"
    r"|launch)\b|\brun (?:code|script|the script|the binary) from (https?://[^\s`'\")>]+)",
    re.IGNORECASE,
)
PASSWORD: Final = Wording(
    (
        "pass",
        "extract unzip unpack archive zip rar protected lock",
    ),
    r"\b(?:extract|unzip|unpack|archive|zip|rar)\b[^\n]{0,120}\b(?:pass(?:word|code)?"
    r"|pass)\b\s{0,2}(?:is\b\s?)?[:=(`'\" ]{1,4}\s{0,2}(?!protect)[`'\"]?[\w!@#-]{3,}"
    r"|\bpassword-protected\b[^.\n]{0,60}\b(?:archive|zip|file)"
    r"|\block\b[^.\n]{0,30}\bfile\b[^.\n]{0,30}\bwith password\b",
    re.IGNORECASE,
)
REMOVE: Final = re.compile(
    r"\b(?:delete|remove|erase|wipe)\b[^.\n]{0,50}\b(?:original|other versions|source|all (?:other )?(?:files"
    r"|events|data|emails)|unencrypted)\b",
    re.IGNORECASE,
)
LOOSEN: Final = re.compile(
    r"\b(?:grant|allow|add|enable|set|auto-?approve|whitelist|relax|disable|turn off|permit|append|broaden"
    r"|modify|edit|write|update|change|insert)\w*\b[^\n]{0,80}\b(?:permissions?|allow ?list|approval"
    r"|confirmation|sandbox|safety|your own rules|broader|bypass\w*|auto-?approve|deny list|all commands"
    r"|unrestricted|Bash\(\*|highest priority)",
    re.IGNORECASE,
)
MANDATE: Final = Wording(
    (
        "bash( this_tool this_skill",
        "priority overrid bypass unrestricted deny blocked instead",
    ),
    r"\b(?:always|must)\b[^.\n]{0,30}\b(?:run|use|call|invoke|execute)\b[^.\n]{0,30}\b(?:this (?:tool"
    r"|skill)) (?:first|before)[^\n]{0,200}\b(?:bypass|priority over|override|instead of (?:all|any) other)"
    r"|\bBash\(\*\)[^\n]{0,80}\b(?:no deny|unrestricted|nothing is blocked)",
    re.IGNORECASE,
)
AGAINST: Final = Wording(
    (
        (
            "regardless even_if even_when ignor overrid irrespective without bypass despite cannot can't can_not "
            "re-enabl reenabl reinstall restore only_the not_prompted not_asked"
        ),
    ),
    r"\b(?:regardless of|even (?:if|when)|ignor(?:e|es|ing)|overrid(?:e|es|ing)|irrespective of"
    r"|without waiting for|bypass(?:es|ing)?|despite)\b[^.\n]{0,50}\b(?:user(?:'s)?|confirm\w*|dry[_-]?run"
    r"|approv\w*|consent|preference|opt[- ]?out|setting|permission|objection|request|two-person|denied|refus\w*"
    r"|declin\w*|instructions|cancel)\b|\busers? (?:cannot|can't|can not) (?:opt out|disable|cancel|refuse"
    r"|change|turn)|\b(?:re-?enables?|reinstalls?|restores?) (?:it|itself|the service)\b"
    r"|\bonly the (?:provider|author)|\b(?:not prompted|without prompting|without asking|not asked"
    r"|without (?:additional |further |explicit |any )?(?:user )?(?:confirmation|consent|approval|authorization"
    r"|permission))\b",
    re.IGNORECASE,
)
ACT: Final = re.compile(
    r"\b(?:delet\w*|remov\w*|terminat\w*|purchas\w*|charg\w*|renew\w*|transfer\w*|deploy\w*|push\w*"
    r"|force-push\w*|merg\w*|elevat\w*|escalat\w*|permissions?|install\w*|download\w*|updat\w*|modif\w*"
    r"|reset\w*|revok\w*|send\w*|sent|email\w*|collect\w*|stor(?:e|es|ed|ing)|profil\w*|retain\w*|shar(?:e|es"
    r"|ed|ing)|transmit\w*|record\w*|monitor\w*|upload\w*|track\w*|forward\w*|inject\w*|alter\w*|replac\w*"
    r"|execut\w*|advertis\w*|recommend\w*|score|premium|promot\w*|sponsor\w*|biometric|exfiltrat\w*|encod\w*"
    r"|scan\w*|access\w*|operations?|background)\b",
    re.IGNORECASE,
)
BACKDOOR: Final = Wording(
    ("backdoor keylogger rootkit reverse_shell password",),
    r"\b(?:include|add|open|create|install|insert|plant|leave)\b[^.\n]{0,30}\b(?:a )?(?:backdoor|keylogger"
    r"|rootkit|reverse shell)\b|\b(?:add|create|insert)\b[^\n]{0,60}\b(?:admin|root|super ?user|user"
    r"|account)\b[^\n]{0,60}\bpassword\s[`'\"]\S{5,40}[`'\"]",
    re.IGNORECASE,
)
PROTECTION: Final = Wording(
    (
        "disable turn_off deactivate stop kill uninstall",
        "antivirus anti-virus defender gatekeeper firewall edr endpoint security smartscreen audit logging",
    ),
    r"\b(?:disable|turn off|deactivate|stop|kill|uninstall)\b[^.\n]{0,30}\b(?:antivirus|anti-virus"
    r"|windows defender|defender|gatekeeper|firewall|EDR|endpoint protection|security (?:software|tools?"
    r"|controls?|monitoring)|security before|smartscreen|audit(?:ing| log\w*)|logging)\b",
    re.IGNORECASE,
)
OUTWARD: Final = re.compile(
    r"\b(?:remote|external|third-party|vendor|attacker)\s(?:\w{2,12}\s){0,2}(?:server|endpoint|service|host"
    r"|webhook)|\b(?:our|their)\s(?:\w{2,12}\s){0,2}(?:server|endpoint|api|service|collector)\b",
    re.IGNORECASE,
)
DNS: Final = Wording(
    ("dns nslookup scp smtp:// s3",),
    r"\bvia dns\b|\bdns (?:lookup|quer)\w*[^.\n]{0,20}\bto\b|\bnslookup\b|\bscp\b|\bsmtp://|\baws s3 cp\b",
    re.IGNORECASE,
)
