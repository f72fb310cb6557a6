"""The lines of every client with words in the places of names, for agents that read llms.txt."""

from __future__ import annotations

from marketplace.addresses import catalogue_name, collection_href, plugin_list_name, repository_url, skill_href
from marketplace.install_lines.clients import (
    LABELS,
    clawhub_registry,
    with_apm,
    with_claude,
    with_clawhub,
    with_codex,
    with_git,
    with_skills,
)

_SKILL, _OWNER, _VERSION, _COLLECTION = "SLUG", "OWNER", "VERSION", "COLLECTION"


def guide(base: str) -> list[dict[str, str]]:
    """Return what installs from the registry with the base URL ``base``: ``client``, ``command``, and ``of`` what.

    SLUG, OWNER, VERSION and COLLECTION stand for names that the API gives.
    """
    at = skill_href(_SKILL, f"versions/{_VERSION}")
    repository = repository_url(base, _OWNER, _SKILL)
    listed = f"{_SKILL}-{plugin_list_name(base, '')}"
    of_skill = {
        "skills": with_skills(base + at),
        "claude": with_claude(f"{base}{at}/marketplace.json", listed, [_SKILL]),
        "codex": with_codex(repository, catalogue_name(_SKILL), [_SKILL], _VERSION),
        "clawhub": f"{clawhub_registry(base)} {with_clawhub(_SKILL, _VERSION)}",
        "apm": with_apm(base, [f"{_OWNER}/{_SKILL}#{_VERSION}"]),
        "git": with_git(repository, _VERSION),
    }
    of_set = {"skills": with_skills(base + collection_href(_COLLECTION), "--skill", "*")}
    lines = [*((key, command, "") for key, command in of_skill.items())]
    lines += [(key, command, "a whole collection") for key, command in of_set.items()]
    return [{"client": LABELS[key], "command": command.replace("\n", " && "), "of": of} for key, command, of in lines]
