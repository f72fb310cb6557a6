"""Say what a skill does, each with its places, beside what it declares in its front matter."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any, Final

from submissions.verification.engine.anchored import Anchored
from submissions.verification.engine.files import SkillParts
from submissions.verification.engine.parts import Kind, Part, Sign
from submissions.verification.engine.references import references_of

MOST_PLACES: Final = 3
_LONGEST_PART: Final = 200_000
_LONGEST_FIELD: Final = 1024

_OF_SIGNS: Final = {
    "reads_secrets": ("secret-sent", "secret-sent-by-agent", "token-sent", "secret-in-lookup", "key-shown",
                      "secrets-collected"),
    "reads_environment": ("environment-sent",),
    "sends": ("sends", "secret-sent", "environment-sent", "personal-data-sent", "token-sent", "data-to-drop",
              "file-sent", "file-sent-always", "data-sent-by-agent", "secret-sent-by-agent"),
    "downloads": ("downloaded-code-run", "download-asked", "instructions-fetched"),
    "executes": ("downloaded-code-run", "decoded-code-run", "reverse-shell", "command-pasted"),
    "persists": ("autostart", "autostart-note", "profile-changed", "profile-note", "key-added"),
    "changes_agent": ("agent-file-written", "agent-file-planted", "agent-loosened", "agent-redirected"),
    "escalates": ("rights-raised", "protection-off", "protection-off-asked", "quarantine-removed"),
    "hides": ("hidden-letters", "disguised-letters", "hidden-address", "hidden-program", "hidden-from-user",
              "traces-removed", "decoded-code-run"),
    "addresses_agent": ("rules-overridden", "hidden-from-user", "user-lied-to", "user-overruled", "strangers-obeyed"),
}  # fmt: skip
_CHAINS: Final = {
    "secrets_to_network": ("secret-sent", "secret-sent-by-agent", "environment-sent", "token-sent",
                           "secret-in-lookup"),
    "download_to_execution": ("downloaded-code-run", "download-asked", "instructions-fetched"),
}  # fmt: skip
_IN_CODE: Final = {
    "reads_files": Anchored(
        "open( read file_get_contents fopen get-content cat head tail",
        ("open(", ".read_text(", ".read_bytes(", ".read_csv(", ".read_json(", ".read_excel(", "readFile",
         "createReadStream", "File.read", "File.open", "file_get_contents", "ReadAllText", "ReadAllBytes",
         "Get-Content", "fs::read"),
        r"(?<![\w.])open\(|\.read_(?:text|bytes|csv|json|excel)\(|readFile|createReadStream|File\.(?:read|open)"
        r"|file_get_contents|ReadAll(?:Text|Bytes)|Get-Content|fs::read|\bfopen\(",
        r"(?:\$ )?(?:cat|head|tail) [^\n<]",
    ),
    "reads_environment": Anchored(
        "env",
        ("os.environ", "os.getenv", "process.env", "getenv(", "ENV[", "ENV.fetch", "$env:", "env::var", "printenv",
         "os.Getenv"),
        r"os\.environ|os\.getenv|\bprocess\.env\b|\bgetenv\(|\bENV(?:\[|\.fetch)|\$env:|env::var|\bprintenv\b"
        r"|os\.Getenv",
    ),
    "reads_secrets": Anchored(
        "key token secret passw credential .env netrc shadow npmrc pypirc keyring keychain id_",
        (".ssh/id_", ".aws/credentials", ".git-credentials", ".netrc", ".npmrc", ".pypirc", ".docker/config.json",
         ".kube/config", "/etc/shadow", ".env", "keyring.get_password", "login.keychain", "API_KEY", "APIKEY", "TOKEN",
         "SECRET", "PASSWORD", "PASSWD", "CREDENTIAL"),
        r"\.ssh/id_|\.aws/credentials|\.git-credentials|\.netrc\b|\.npmrc\b|\.pypirc\b|\.docker/config\.json"
        r"|\.kube/config|/etc/shadow|(?<![\w.])\.env\b|keyring\.get_password|login\.keychain"
        r"|(?:environ(?:\.get)?[\[(]|[gG]et[eE]nv\(|process\.env[.\[]|\$env:|\$\{?)['\"]?[A-Z0-9_]{0,40}"
        r"(?:API_?KEY|TOKEN|SECRET|PASSWORD|PASSWD|CREDENTIAL)",
    ),
    "sends": Anchored(
        "post put patch data form upload smtp sendmail scp rsync push beacon -f -d -t",
        (".post(", ".put(", ".patch(", "method", "sendBeacon(", "smtplib", "sendmail", "curl", "-Method",
         "UploadFile(", "UploadData(", "UploadString(", "http.Post(", "git push"),
        r"\b(?:requests|httpx|axios|session|client)\.(?:post|put|patch)\("
        r"|method['\"]?\s{0,200}[:=]\s{0,200}['\"](?:POST|PUT|PATCH)"
        r"|sendBeacon\(|\bsmtplib\b|\bsendmail\b|\bcurl\b[^\n|;]{0,300}\s(?:-d|--data\S{0,20}|-F|--form|-T"
        r"|--upload-file|-X ?(?:POST|PUT|PATCH))(?=[\s'\"=])|-Method ['\"]?(?:Post|Put)"
        r"|Upload(?:File|Data|String)\(|http\.Post\(|\bgit push\b",
        r"(?:\$ )?(?:scp|rsync) ",
    ),
    "downloads": Anchored(
        "curl wget .get( urlopen urlretrieve fetch( axios clone invoke-w iwr download install npx uvx pull dlx",
        ("curl ", "wget ", ".get(", "urlopen(", "urlretrieve(", "fetch(", "axios(", "git clone", "Invoke-WebRequest",
         "iwr", "DownloadFile(", "DownloadString(", "http.Get(", "npx ", "uvx ", "docker pull", "pip ", "pip3 ", "npm ",
         "yarn ", "uv ", "gem ", "cargo ", "brew ", "apt ", "apt-get ", "go "),
        r"\b(?:curl|wget) |\b(?:requests|httpx|axios|session)\.get\(|\burl(?:open|retrieve)\(|(?<![\w.])fetch\("
        r"|\baxios\(|\bgit clone\b|Invoke-WebRequest|\biwr\b|Download(?:File|String)\(|http\.Get\("
        r"|\b(?:pip3?|npm|pnpm|yarn|uv|gem|cargo|brew|apt|apt-get|go) (?:-\S+ )?(?:install|add|i|get)\b|\bnpx |\buvx "
        r"|\bdocker pull\b",
    ),
    "executes": Anchored(
        "subprocess system( popen exec eval spawn child_process function( iex bash sh zsh python node npx start",
        ("subprocess.", "os.system(", "os.popen(", "exec(", "eval(", "execSync(", "execFile(", "spawn(", "spawnSync(",
         "child_process", "new Function(", "proc_open(", "Runtime.getRuntime", "exec.Command(", "Process.Start",
         "Invoke-Expression", "iex"),
        r"\bsubprocess\.|\bos\.(?:system|popen)\(|(?<![\w.])(?:exec|eval|execSync|execFile|spawn|spawnSync)\("
        r"|child_process|\bnew Function\(|shell_exec\(|proc_open\(|Runtime\.getRuntime|exec\.Command\(|Process\.Start"
        r"|Invoke-Expression|\biex\b",
        r"(?:\$ )?(?:bash|sh|zsh|python3?|node|ruby|perl|npx|uvx|\./\S+)(?: |$)",
    ),
    "escalates": Anchored("sudo runas", ("sudo ", "RunAs"), r"(?<![\w-])sudo |\bRunAs\b"),
}  # fmt: skip
# What a skill may say of itself, and the tools that it may ask for, by which each is declared.
_WORDS: Final = {
    "reads_files": r"\b(?:read|pars|convert|analy[sz]|extract|process|review|audit|scan|inspect|summari[sz]|edit"
    r"|format|lint|documents?|files?|pdf|csv|docx|xlsx|spreadsheet|logs?|images?|code|repositor|folder|director)\w*",
    "reads_environment": r"\benv(?:ironment)?(?: var|\b)|\b[A-Z][A-Z0-9]*_(?:KEY|TOKEN|SECRET|URL|ID)\b"
    r"|\b(?:api[ _-]?key|token|credential|secret|authenticat|sign[- ]?in|log[- ]?in)\w*",
    "reads_secrets": r"\b[A-Z][A-Z0-9]*_(?:KEY|TOKEN|SECRET)\b"
    r"|\b(?:api[ _-]?key|token|credential|secret|password|authenticat|ssh key|keychain)\w*",
    "sends": r"\b(?:send|post|publish|upload|submit|push|deploy|notif|e-?mail|messag|slack|webhook|api|sync|share"
    r"|tickets?|pull requests?)\w*",
    "downloads": r"\b(?:download|fetch|install|scrap|crawl|web|url|internet|network|online|api|search|clon|http"
    r"|remote)\w*",
    "executes": r"\b(?:run|execut|scripts?|commands?|cli|shell|terminal|build|test|compil|automat|python|node|bash)\w*",
    "persists": r"\b(?:schedul|cron|start-?up|autostart|background|daemon|services?|hooks?|persist|recurring|dotfiles?"
    r"|shell (?:config|profile))\w*",
    "changes_agent": r"\b(?:claude|agents?|memor(?:y|ies)|settings|hooks?|mcp|rules?|skills?|cursor|copilot|codex)\b",
    "escalates": r"\b(?:sudo|root|administrator|privileg|elevat|system-wide|harden|firewall)\w*",
}
_TOOLS: Final = {
    "reads_files": r"\b(?:Read|Grep|Glob|LS|NotebookRead)\b",
    "sends": r"\bBash\((?:curl|gh|scp|rsync|git push)\b",
    "downloads": r"\b(?:WebFetch|WebSearch)\b|\bBash\((?:curl|wget|git clone|npm|npx|pip3?|uvx?)\b",
    "executes": r"\b(?:Bash|Shell|Terminal|Execute)\b",
}
_DECLARED: Final = {
    name: {"allowed-tools": re.compile(_TOOLS[name])} if name in _TOOLS else {} for name in _OF_SIGNS | _WORDS
}
_SAID: Final = {name: re.compile(pattern, re.IGNORECASE) for name, pattern in _WORDS.items()}
# "Never sends" and "works without the network" declare nothing; "not only reads", and what follows "but", do.
_DENIED: Final = re.compile(
    r"\b(?:not(?! only\b)|never|no|without|nor|cannot|can't|don't|doesn't|won't)\b"
    r"(?:(?!\b(?:but|instead|only|unless|except|until|and then)\b)[^.,;:!?()])*\Z",
    re.IGNORECASE,
)
_FIELD: Final = re.compile(r"^([A-Za-z][\w-]{0,40}):[ \t]*(.*?)(?=^[A-Za-z][\w-]{0,40}:|\Z)", re.DOTALL | re.MULTILINE)
_FIELDS: Final = ("description", "allowed-tools", "compatibility", "metadata")
_REMARK: Final = ("#", "//", "*", "--", "<!--", '"""')


@dataclass(frozen=True, slots=True)
class _Deed:
    places: dict[tuple[str, int], None]

    def at(self, file: str, line: int) -> None:
        if len(self.places) < MOST_PLACES:
            self.places.setdefault((file, line))

    @property
    def is_full(self) -> bool:
        return len(self.places) >= MOST_PLACES


def contract_of(skill: SkillParts, signs: Iterable[Sign], findings: Iterable[tuple[Sign, str]]) -> dict[str, Any]:
    """Return what a skill declares, what it does and what it refers to, as plain values.

    ``signs`` are all that was found, ``findings`` those that count with their severity.
    """
    signs = list(signs)
    declares = _declarations(skill)
    references, left = references_of(skill, signs)
    does = [
        {"name": name, "declared": _declared(name, declares), "places": [list(place) for place in deed.places]}
        for name, deed in _deeds(skill, signs).items()
        if deed.places
    ]
    return {
        "declares": declares,
        "does": does,
        "chains": _chains(findings),
        "references": [
            {
                "kind": one.kind,
                "name": one.name,
                "file": one.file,
                "line": one.line,
                "role": one.role,
                "pinned": one.pinned,
            }
            for one in references
        ],
        "left": left,
    }


def _deeds(skill: SkillParts, signs: Iterable[Sign]) -> dict[str, _Deed]:
    deeds = {name: _Deed({}) for name in {"reads_files": (), "reads_environment": (), **_OF_SIGNS}}
    of_sign: dict[str, list[str]] = {}
    for name, ids in _OF_SIGNS.items():
        for one in ids:
            of_sign.setdefault(one, []).append(name)
    for sign in signs:
        for name in of_sign.get(sign.name, ()):
            deeds[name].at(sign.part.file, sign.line)
    for part in skill.parts:
        if part.kind is Kind.CODE:
            _note_code(part, deeds)
    return deeds


def _note_code(part: Part, deeds: Mapping[str, _Deed]) -> None:
    text = part.text[:_LONGEST_PART]
    lower = text.lower()
    for name, anchored in _IN_CODE.items():
        if deeds[name].is_full or (start := anchored.find(text, lower)) < 0:
            continue
        # Only the first of each part: what follows in it would fill the places with one file.
        line = text[text.rfind("\n", 0, start) + 1 : start + 1].lstrip()
        if not line.startswith(_REMARK):
            deeds[name].at(part.file, part.line + (0 if part.origin else text.count("\n", 0, start)))


def _declarations(skill: SkillParts) -> dict[str, str]:
    """Return the fields of the front matter that declare something, shortened."""
    for part in skill.parts:
        if part.origin == "frontmatter" and part.file == "SKILL.md":
            found = {
                match[1].lower(): " ".join(match[2].split())[:_LONGEST_FIELD] for match in _FIELD.finditer(part.text)
            }
            return {name: found[name] for name in _FIELDS if found.get(name)}
    return {}


def _declared(name: str, declares: Mapping[str, str]) -> str:
    """Return the words by which a skill declares what it does, with their field; '' where it does not."""
    for field, pattern in _DECLARED[name].items():
        if (match := pattern.search(declares.get(field, ""))) is not None:
            return f"{field}: {match[0]}"
    if name in _SAID:
        for field in ("description", "compatibility", "metadata"):
            text = declares.get(field, "")
            for match in _SAID[name].finditer(text):
                if _DENIED.search(text[: match.start()]) is None:
                    return f"{field}: {match[0]}"
    return ""


def _chains(findings: Iterable[tuple[Sign, str]]) -> list[dict[str, Any]]:
    """Return the chains that were found, each with its places and whether an undeclared one holds the skill."""
    found: dict[str, dict[str, Any]] = {}
    for sign, severity in findings:
        for name, ids in _CHAINS.items():
            if sign.name in ids:
                chain = found.setdefault(name, {"name": name, "holds": False, "places": []})
                chain["holds"] = chain["holds"] or severity in {"high", "critical"}
                if len(chain["places"]) < MOST_PLACES and list(sign.place) not in chain["places"]:
                    chain["places"].append(list(sign.place))
    return list(found.values())
