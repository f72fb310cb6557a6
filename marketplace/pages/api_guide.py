"""The content of the page about the API: the URLs for programs, and what each returns."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final


@dataclass(frozen=True)
class Call:
    """One request and a sentence about its response."""

    request: str
    answer: str


@dataclass(frozen=True)
class CallGroup:
    """Calls that belong together, with a title and a sentence (``about``, possibly empty) for all of them."""

    title: str
    about: str
    calls: tuple[Call, ...]


GROUPS: Final = (
    CallGroup(
        "Read",
        "Answers are JSON with an ETag. A list has nextCursor, which is null on the last page; send it as cursor.",
        (
            Call("GET /api/v1/openapi.json", "All of this for programs, in OpenAPI 3.1."),
            Call("GET /api/v1/skills?limit=&cursor=&sort=", "The skills that are published."),
            Call(
                "GET /api/v1/search?q=",
                "The skills that match, best first; loosened and notSearched say how the words were taken.",
            ),
            Call("GET /api/v1/skills/{slug}", "One skill: latest version, publisher, verdict, install lines."),
            Call("GET /api/v1/skills/{slug}/versions", "Its versions, the newest first."),
            Call("GET /api/v1/skills/{slug}/versions/{version}", "One version with its files, sizes and digests."),
            Call("GET /api/v1/skills/{slug}/verify", "Whether a version passed, and what its newest scan found."),
            Call("GET /api/v1/skills/{slug}/scans?version=", "What each scan of a version came to, the newest first."),
            Call("GET /api/v1/skills/{slug}/external-scans?version=", "What engines outside this registry said of it."),
            Call("POST /api/v1/skills/{slug}/scan-again", 'Have {"version": "optional"} scanned again: 202 if asked.'),
            Call(
                "GET /api/v1/collections", "Sets of skills that operators put together; {slug} behind it for one set."
            ),
            Call("GET /api/v1/skills/{slug}/alike?version=", "Skills with similar text, and the one that it is from."),
            Call("GET /api/v1/skills/{slug}/repo-health", "Whether its repository answers, since when, as seen when."),
        ),
    ),
    CallGroup(
        "Follow",
        "Feeds in Atom, with an ETag. The filters of the list narrow the first two down.",
        (
            Call("GET /feeds/new.atom?q=&verdict=", "The skills that were published last."),
            Call("GET /feeds/updated.atom", "The skills that changed last."),
            Call("GET /feeds/withdrawn.atom", "What was withdrawn, and why."),
        ),
    ),
    CallGroup(
        "Fetch",
        "Archives are the same bytes every time; their SHA-256 is on the page of the skill and in the header Digest.",
        (
            Call("GET /skills/{slug}/download/{version}.zip", "The archive of exactly this version; also .tar.gz."),
            Call("GET /api/v1/skills/{slug}/file?path=&version=", "The bytes of one file."),
            Call("GET /skills/{slug}/.well-known/agent-skills/index.json", "What the client skills installs from."),
            Call("POST /mcp", "A search and the skills over MCP, for hosts such as Claude Code and Codex."),
        ),
    ),
    CallGroup(
        "Check",
        "What is signed of a version, where the registry has keys, and the log of verdicts and withdrawals.",
        (
            Call(
                "GET /api/v1/skills/{slug}/provenance?version=", "Its statement, its keys and its entries in the log."
            ),
            Call("GET /skills/{slug}/download/{version}.model.sig", "The signature of its files; also .intoto.json."),
            Call("GET /.well-known/vskill-keys.json", "The public keys, those that sign now first."),
            Call("GET /api/v1/log", "The signed head of the log; /checkpoint behind it for the note alone."),
            Call("GET /api/v1/log/entries?start=&end=", "Entries of the log, at most 500."),
            Call("GET /api/v1/log/inclusion?index=&size=", "The proof that the log has an entry."),
            Call("GET /api/v1/log/consistency?first=&second=", "The proof that the log began as it was then."),
        ),
    ),
    CallGroup(
        "Submit",
        "The answer is the state that the submission really has; follow it at its own address.",
        (
            Call(
                "POST /api/v1/submissions",
                'Submit {"repoUrl": "https://…", "skillPath": "optional"}; "dryRun": true lists only.',
            ),
            Call("GET /api/v1/submissions?repoUrl=&cursor=", "The submissions, the newest first."),
            Call("GET /api/v1/submissions/{id}", "Where one submission stands, with reasons and every step."),
            Call("POST /api/v1/listings", 'List the skills of {"repoUrl": "…", "folder": "optional"}, submit none.'),
            Call("GET /api/v1/listings/{id}?cursor=&folder=&q=", "The next page of that list, for six hours."),
            Call("POST /api/v1/jobs", 'Submit every skill of {"repoUrl": "…", "folder": "optional"} as one job.'),
            Call("GET /api/v1/jobs/{id}?cursor=&standing=", "How far a job is, and where each of its skills stands."),
            Call("POST /api/v1/jobs/{id}/stop", 'Stop it with {"stopKey": "…"}: what waits is withdrawn.'),
        ),
    ),
    CallGroup(
        "Review and operate",
        "For reviewers and operators, with a token that was made for it. A change has a reason, and seen: the version "
        "that was looked at. Where somebody else was first, the answer is 409.",
        (
            Call("GET /api/v1/review?cursor=", "What waits for a reviewer, the strongest first."),
            Call("GET /api/v1/review/{id}", "One submission with its findings."),
            Call("POST /api/v1/review/{id}/decision", '{"decision": "approve" or "reject", "reason": "…", "seen": 1}'),
            Call("POST /api/v1/review/{id}/undo", "Take back your own decision."),
            Call("POST /api/v1/operate/skills/{slug}", "Withdraw a skill or a version, or bring it back."),
            Call("POST /api/v1/operate/submissions/{id}", "Check a submission again, or take it out of the queue."),
            Call(
                "POST /api/v1/operate/blocks", "Block a repository, an owner or a content; /remove behind it ends it."
            ),
            Call("GET /api/v1/operate/queue", "The numbers of the queue."),
        ),
    ),
    CallGroup(
        "Watch",
        "",
        (
            Call("GET /healthz", "200 while web, consumer and scheduler live; 503 with the one that does not."),
            Call(
                "POST /api/v1/webhooks/{github|gitlab|gitea}",
                "The signed webhook of a push; 202 queues a look.",
            ),
            Call("GET /api/v1/blocklist?cursor=", "What this registry refuses, and why."),
        ),
    ),
)


def examples(base: str) -> list[dict[str, str]]:
    """Return shell commands to try against the registry with the base URL ``base``."""
    submission = """-H 'Content-Type: application/json' -d '{"repoUrl": "https://github.com/owner/repository"}'"""
    return [
        {"identifier": "try-list", "command": f"curl -s '{base}/api/v1/skills?limit=5'"},
        {"identifier": "try-search", "command": f"CLAWHUB_REGISTRY={base} npx clawhub search notes"},
        {"identifier": "try-submit", "command": f"curl -s {base}/api/v1/submissions \\\n  {submission}"},
    ]
