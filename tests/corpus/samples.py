"""Take the samples out of a clone, each as the files that it has."""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from submissions.source.tree_entries import TreeEntry
from submissions.verification.package_plan import is_skill_file
from tests.corpus.clones import Clone
from tests.corpus.sources import BARE_FOLDER, FOLDER, INJECTED, PAGE, Rule, Source, kind_of

SKILL_FILE = "SKILL.md"
# What tells the label, or is of an operating system.
_LEFT_OUT = re.compile(r"(^|/)(_?expected[\w-]*\.json|labels?\.\w+|\.DS_Store|\._[^/]*|INDEX\.md)$", re.IGNORECASE)
# How many base skills one instruction is put into.
_HOSTS = 2


@dataclass(frozen=True)
class RawSample:
    """One sample as it was found: ``origin`` is where in its repository, ``files`` are by path in the skill."""

    source: Source
    rule: Rule
    origin: str
    campaign: str
    kind: str
    files: Mapping[str, bytes] = field(repr=False)


def samples_of(source: Source, clone: Clone) -> Iterator[RawSample]:
    """Yield the samples of a source, in the order of its rules and of their paths."""
    for rule in source.rules:
        if rule.layout == INJECTED:
            yield from _injected(source, rule, clone)
        elif rule.layout == PAGE:
            pages = [entry for entry in clone.entries if re.fullmatch(rule.pattern, entry.path)]
            contents = clone.read(_chosen(rule, pages))
            for path, content in contents.items():
                yield _sample(source, rule, path, {SKILL_FILE: content})
        else:
            yield from _folders(source, rule, clone)


def _chosen(rule: Rule, entries: list[TreeEntry]) -> list[TreeEntry]:
    if not rule.most or len(entries) <= rule.most:
        return entries
    by_hash = sorted(entries, key=lambda entry: hashlib.sha256(entry.path.encode()).digest())
    return sorted(by_hash[: rule.most], key=lambda entry: entry.path)


def _folders(source: Source, rule: Rule, clone: Clone) -> Iterator[RawSample]:
    inside: dict[str, list[TreeEntry]] = {}
    for folder in _matching_folders(rule, clone):
        inside[folder] = []
    for entry in clone.entries:
        folder = entry.path
        while folder:
            folder = folder.rpartition("/")[0]
            if folder in inside and not _LEFT_OUT.search(entry.path):
                inside[folder].append(entry)
    for folder, entries in sorted(inside.items()):
        files = clone.read(entries)
        named = {path[len(folder) + 1 :]: content for path, content in files.items()}
        if named:
            yield _sample(source, rule, folder, named)


def _matching_folders(rule: Rule, clone: Clone) -> set[str]:
    if rule.layout == FOLDER:
        candidates = {entry.path.rpartition("/")[0] for entry in clone.entries if is_skill_file(entry.path)}
    else:
        assert rule.layout == BARE_FOLDER
        candidates = {folder for entry in clone.entries for folder in _above(entry.path)}
    return {folder for folder in candidates if re.fullmatch(rule.pattern, folder)}


def _above(path: str) -> Iterator[str]:
    while path := path.rpartition("/")[0]:
        yield path


def _sample(source: Source, rule: Rule, origin: str, files: Mapping[str, bytes]) -> RawSample:
    match = re.fullmatch(rule.pattern, origin)
    assert match is not None
    groups = match.groupdict()
    # The folders above tell of the whole collection.
    words = "/".join(origin.split("/")[-2:])
    kind = kind_of(rule, groups.get("code", ""), groups.get("code", "") + " " + words)
    return RawSample(source, rule, origin, rule.campaign.format(**groups), kind, files)


def _injected(source: Source, rule: Rule, clone: Clone) -> Iterator[RawSample]:
    """Put each instruction of a list into skills that it was written for, with its scripts, as the authors do."""
    bases = {
        folder.rpartition("/")[2]: folder
        for folder in (entry.path.rpartition("/")[0] for entry in clone.entries if entry.path.endswith(SKILL_FILE))
    }
    for found in (entry for entry in clone.entries if re.fullmatch(rule.pattern, entry.path)):
        for injection in json.loads(clone.read([found])[found.path]):
            hosts: set[str] = set()
            for task in injection["tasks"]:
                skill = task["skill"]
                if skill in hosts or skill not in bases or len(hosts) == _HOSTS:
                    continue
                hosts.add(skill)
                files = _with_injection(clone, bases[skill], injection, task)
                if files:
                    origin = f"{found.path}#{injection['id']}-{skill}"
                    kind = kind_of(rule, "", injection["title"])
                    yield RawSample(source, rule, origin, rule.campaign, kind, files)


def _with_injection(
    clone: Clone, folder: str, injection: Mapping[str, Any], task: Mapping[str, Any]
) -> dict[str, bytes]:
    files = _below(clone, folder)
    line, place = injection["instructions"].get("line_injection", ""), task.get("line_num")
    if not line or not place:
        return {}
    lines = files[SKILL_FILE].decode("utf-8").splitlines(keepends=True)
    added = [f"{one.strip()}\n" for one in f"{task.get('injection_prefix', '')}{line}".strip("\n").splitlines()]
    files[SKILL_FILE] = "".join([*lines[: place - 1], *added, *lines[place - 1 :]]).encode()
    scripts = injection.get("task_scripts", {})
    for name, path in scripts.items():
        wanted = [entry for entry in clone.entries if entry.path == f"data/{path}"]
        files |= {f"scripts/{name}": content for content in clone.read(wanted).values()}
    return files


def _below(clone: Clone, folder: str) -> dict[str, bytes]:
    entries = [entry for entry in clone.entries if entry.path.startswith(f"{folder}/")]
    return {path[len(folder) + 1 :]: content for path, content in clone.read(entries).items()}


def with_files(sample: RawSample, files: Mapping[str, bytes]) -> RawSample:
    """Return a sample with other files."""
    return replace(sample, files=dict(files))


def text_files(files: Mapping[str, bytes]) -> Iterable[tuple[str, str]]:
    """Yield the files that are text, in order."""
    for path, content in sorted(files.items()):
        try:
            text = content.decode("utf-8")
        except UnicodeDecodeError:
            continue
        if "\0" not in text:
            yield path, text
