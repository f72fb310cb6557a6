"""What names mean: paths of secrets, names of variables, commands and words. Data, read by every judge."""

from __future__ import annotations

import re
from typing import Final

from submissions.verification.engine.phrase import Phrase

SECRET_FILE: Final = re.compile(
    r"\.ssh(?:/(?!config\b|known_hosts|authorized)|(?![\w/.]))|\bid_(?:rsa|ed25519|ecdsa|dsa)\b(?!\.pub)"
    r"|\.aws/(?:credentials|config)"
    r"|\.git-credentials|\.docker/config\.json|\.kube/config|\.gnupg\b|\.config/gcloud|\.azure/|/etc/(?:shadow"
    r"|sudoers)"
    r"|\.npmrc\b|\.pypirc\b|\.netrc\b|\.pgpass\b|\.vault-token|\.vault_pass|\.terraform\.d/credentials"
    r"|terraform\.tfstate"
    r"|(?<![\w/])(?:\S{0,80}/)?\.env(?:\.(?:local|production|prod|development|staging))?(?![\w.(/])"
    r"|\bsecrets?\.(?:json|ya?ml|toml)|\bcredentials\.(?:json|csv|txt|xml|ya?ml)|\bwallet\.dat\b"
    r"|\.config/solana/id\.json"
    r"|\.(?:claude|anthropic|openclaw|codex|gemini)/(?:\.?credentials|auth|openclaw\.json)|\.config/(?:gh/hosts"
    r"|op/|anthropic)"
    r"|(?:privkey|private[_-]?key|server-key)\.(?:pem|key)|\.1password|\.password-store|kdbx\b"
    r"|/var/run/secrets/|\.clawdbot/|\*\.(?:pem|key|p12|pfx|keystore|jks)\b|\bmnemonic|\bseed[_-]?phrase"
    r"|metamask|\*\.wallet\b|keystore\.(?:json|jks)|auth-profiles\.json|\.config/secrets",
    re.IGNORECASE,
)
DOTENV_ONLY: Final = re.compile(r"(?:\S{0,80}/)?\.env(?:\.\w{1,20})?", re.IGNORECASE)
PERSONAL: Final = re.compile(
    r"Cookies\.binarycookies|\bpbpaste\b|\bxclip\b[^|\n]{0,40}-o\b|\bxsel\b[^|\n]{0,20}-o|Get-Clipboard"
    r"|pyperclip\.paste|clipboard\.readText"
    r"|\bscreencapture\b|\bscrot\b|ImageGrab\.grab|pyautogui\.screenshot|\.(?:bash|zsh)_history|\bLogin Data\b"
    r"|Chrome/(?:User Data|Default|Profile)[^\n]{0,40}(?:Cookies|History|Login)|cookies\.sqlite|logins\.json"
    r"|places\.sqlite"
    r"|security (?:find-(?:generic|internet)-password|dump-keychain)|login\.keychain|Library/Keychains"
    r"|\bkeyring\.get_password"
    r"|\bop (?:item|read|signin)\b|\bpynput\b|keyboard\.on_press|GetAsyncKeyState|chat\.db\b"
    r"|secret-tool (?:lookup|search)",
)
SECRET_NAME: Final = re.compile(
    r"(?:^|_)(?:API_?KEY|KEY|TOKEN|SECRET|PASSWORD|PASSWD|PASS|CREDENTIALS?|PRIVATE_KEY|SECRET_KEY|PAT)(?:_ID)?(?:$|_)"
    r"|^DATABASE_URL$",
    re.IGNORECASE,
)
PUBLIC_NAME: Final = re.compile(
    r"PUBLIC|PUBLISHABLE|MAX_TOKENS|TOKENIZER|KEY_(?:PATH|FILE|NAME|ID$)|_URL$|_FILE$", re.IGNORECASE
)
AGENT_FILE: Final = re.compile(
    r"\b(?:CLAUDE|AGENTS|GEMINI|SOUL|MEMORY|TOOLS|HEARTBEAT|IDENTITY|USER)\.md\b|\.cursorrules\b"
    r"|\.cursor/(?:rules|mcp\.json)"
    r"|\.claude/(?:settings(?:\.local)?\.json|CLAUDE|hooks|commands|agents|skills)|\.claude\.json\b|\.mcp\.json\b"
    r"|copilot-instructions\.md|claude_desktop_config\.json|\.codex/|\.windsurfrules|\.openclaw/|mcp_config\.json",
)
AGENT_FILE_NEEDS: Final = (
    *(".md", ".cursor", ".claude", ".mcp.json", "copilot-instructions", "claude_desktop", ".codex", ".windsurfrules"),
    *(".openclaw", "mcp_config"),
)
"""In lower case; of these one occurs in whatever names a file of an agent."""
PROFILE: Final = re.compile(
    r"\.(?:bashrc|zshrc|bash_profile|zprofile|profile|zshenv|bash_login|xprofile)\b|/etc/(?:profile|bash\.bashrc|zsh)"
    r"|fish/config\.fish|Microsoft\.PowerShell_profile|\$PROFILE\b",
)
AUTOSTART: Final = re.compile(
    r"\bcrontab\b|/etc/cron|LaunchAgents/|LaunchDaemons/|systemd/(?:user|system)/|\.config/autostart"
    r"|CurrentVersion\\+Run\b"
    r"|schtasks\s+/create|Start Menu.{0,20}Startup|/etc/rc\.local|/etc/init\.d/|@reboot\b|\.git/hooks/|core\.hooksPath",
    re.IGNORECASE,
)
TRACES: Final = Phrase(
    ("history histfile histsize shred wevtutil clear-eventlog truncate /var/log",),
    r"\bhistory -c\b|unset HISTFILE|HISTFILE=/dev/null|HISTSIZE=0|rm\s+-\w{1,3}\s+[^\n;|&]{0,60}(?:_history|/var/log/)"
    r"|\bshred\b[^\n]{0,60}(?:log|history)|wevtutil cl|Clear-EventLog|truncate -s ?0 /var/log"
    r"|Remove-Item[^\n]{0,60}ConsoleHost_history",
    re.NOFLAG,
)
WEAKENS: Final = Phrase(
    ("spctl csrutil mppreference setenforce systemctl netsh windefend launchctl",),
    r"spctl --(?:master|global)-disable|csrutil disable|Set-MpPreference[^\n]{0,60}-Disable"
    r"|Add-MpPreference[^\n]{0,30}-ExclusionPath"
    r"|\bsetenforce 0|systemctl (?:stop|disable)[^\n]{0,30}(?:auditd|falcon|crowdstrike|defender|apparmor|osquery)"
    r"|netsh advfirewall set allprofiles state off|sc (?:stop|config) WinDefend"
    r"|launchctl unload[^\n]{0,60}(?:santa|crowdstrike)",
    re.IGNORECASE,
)
ESCALATES: Final = Phrase(
    ("nopasswd chmod docker nsenter usermod setcap chown",),
    r"NOPASSWD|chmod (?:u\+s|g\+s|[2467]7[57][57])\b|chmod (?:-R )?777 (?:/(?:\s|$)|/(?:etc|usr|var|opt|root|bin|srv))"
    r"|docker run[^\n]{0,120}(?:--privileged|--pid[= ]host|-v /:/)|nsenter[^\n]{0,40}-t 1\b"
    r"|usermod[^\n]{0,20}-aG (?:sudo|docker|wheel)"
    r"|setcap cap_setuid|chown (?:-R )?root(?::\w+)? /(?:opt|usr|tmp|home)",
    re.NOFLAG,
)
MINER: Final = Phrase(
    ("stratum xmrig minerd cpuminer donate-level",),
    r"stratum\+(?:tcp|ssl)://|\bxmrig\b|\bminerd\b|\bcpuminer\b|--donate-level",
    re.IGNORECASE,
)
REVERSE_SHELL: Final = Phrase(
    ("/dev/tcp nc netcat mkfifo socat tcpclient dup2 fsockopen socket",),
    r"(?:ba|z|da)?sh -i\b[^\n]{0,20}(?:[<>]&|>)[^\n]{0,8}/dev/tcp/|/dev/tcp/[^\n]{1,80}(?:0>&1|<&1)"
    r"|exec \d<>/dev/tcp/[^\n]{1,60}(?:;|\n)[^\n]{0,20}(?:cat|while|sh|bash)"
    r"|\b(?:nc|ncat|netcat)\b[^\n|;]{0,60}\s-(?:\w{0,6}e|c)\s+['\"]?(?:/bin/|/usr/bin/)?(?:ba|z|da|k)?(?:sh"
    r"|cmd(?:\.exe)?|powershell)\b"
    r"|\b(?:nc|ncat|netcat)\b[^\n|;]{0,60}\|\s*(?:/bin/)?(?:ba|z|da)?sh\b"
    r"|mkfifo[^\n]{1,80}\b(?:nc|ncat|netcat|openssl s_client)\b|socat\b[^\n]{0,80}exec:|socat\b[^\n]{0,40}EXEC:"
    r"|Net\.Sockets\.TCPClient[^\n]{0,400}(?:iex|Invoke-Expression)|os\.dup2\([^\n]{0,40}fileno"
    r"|fsockopen\([^\n]{0,120}(?:exec|proc_open|shell_exec)"
    r"|socket[^\n]{0,300}pty\.spawn\(",
    re.NOFLAG,
)
CHAT_TOKENS: Final = re.compile(r"<\|(?:im_start|im_end|system|endoftext)\|>|\[/?INST\]|<</?SYS>>")
FETCHERS: Final = frozenset(
    {"curl", "wget", "fetch", "aria2c", "http", "https", "iwr", "irm", "invoke-webrequest", "invoke-restmethod"}
)
SHELLS: Final = frozenset(
    {
        "sh",
        "bash",
        "zsh",
        "dash",
        "ksh",
        "ash",
        "fish",
        "pwsh",
        "powershell",
        "iex",
        "invoke-expression",
        "pwsh.exe",
        "powershell.exe",
    }
)
INTERPRETERS: Final = frozenset(
    {"python", "python3", "python2", "node", "perl", "ruby", "php", "deno", "bun", "osascript"}
)
RUNNERS: Final = (
    SHELLS
    | INTERPRETERS
    | {"source", ".", "eval", "exec", "chmod", "nohup", "open", "start", "rundll32", "regsvr32", "mshta"}
)
SCRIPT_LANGUAGES: Final = {
    "sh": "shell", "bash": "shell", "zsh": "shell", "shell": "shell", "console": "shell", "terminal": "shell", "ksh":
        "shell",
    "shell-session": "shell", "shellsession": "shell", "fish": "shell", "cmd": "powershell", "bat": "powershell",
        "batch":
        "powershell",
    "powershell": "powershell", "ps1": "powershell", "pwsh": "powershell", "psm1": "powershell",
    "py": "python", "python": "python", "python3": "python", "pyw": "python", "pyi": "python",
    "js": "javascript", "javascript": "javascript", "ts": "javascript", "typescript": "javascript", "jsx": "javascript",
    "tsx": "javascript", "mjs": "javascript", "cjs": "javascript", "mts": "javascript", "node": "javascript", "cts":
        "javascript",
    "vue": "javascript", "svelte": "javascript",
    "rb": "ruby", "ruby": "ruby", "pl": "perl", "perl": "perl", "php": "php", "go": "go", "golang": "go", "rs": "rust",
        "rust":
        "rust",
    "cs": "csharp", "csharp": "csharp", "java": "java", "kt": "kotlin", "swift": "swift", "lua": "lua", "applescript":
        "applescript",
    "scpt": "applescript", "r": "r", "json": "json", "jsonc": "json", "json5": "json", "yaml": "yaml", "yml": "yaml",
        "toml":
        "toml",
    "ini": "ini", "dockerfile": "dockerfile", "makefile": "makefile", "make": "makefile", "html": "html", "svg": "html",
        "xml":
        "html",
    "md": "markdown", "markdown": "markdown", "mdx": "markdown", "vbs": "powershell", "c": "c", "cpp": "c", "h": "c",
        "sql":
        "sql",
}  # fmt: skip
"""The language that a fence or an extension names; anything else is read without one."""
