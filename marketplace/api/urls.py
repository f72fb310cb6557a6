"""The URLs of all dialects, which share one URL space."""

from __future__ import annotations

from django.urls import URLPattern, path

from marketplace.api import (
    account,
    alike,
    apm,
    blocklist,
    clawhub,
    external_scans,
    files,
    log,
    past_scans,
    provenance,
    repo_health,
    skill_sets,
    skills_cli,
    vskill_cli,
    well_known,
)


def _of_one_skill(address: str) -> list[URLPattern]:
    return [
        path(address, clawhub.detail),
        path(f"{address}/versions", clawhub.versions),
        path(f"{address}/versions/diff", vskill_cli.difference),
        path(f"{address}/versions/compare", vskill_cli.comparison),
        path(f"{address}/versions/<str:version>", clawhub.version),
        path(f"{address}/file", files.file),
        path(f"{address}/install", clawhub.install),
        path(f"{address}/installs", vskill_cli.installs),
        path(f"{address}/moderation", clawhub.moderated),
        path(f"{address}/verify", clawhub.verify),
        path(f"{address}/external-scans", external_scans.external_scans),
        path(f"{address}/scans", past_scans.past_scans),
        path(f"{address}/alike", alike.alike),
        path(f"{address}/repo-health", repo_health.repo_health),
        path(f"{address}/provenance", provenance.provenance),
    ]


_index = ".well-known/agent-skills/index.json"

urlpatterns: list[URLPattern] = [
    path(".well-known/clawhub.json", clawhub.discovery),
    path(".well-known/clawdhub.json", clawhub.discovery),
    path(".well-known/vskill-keys.json", provenance.keys, name="signing-keys"),
    path(".well-known/vskill-keys/<str:name>", provenance.key, name="signing-key"),
    path(_index, well_known.root_index, name="well-known"),
    path(f"skills/<str:slug>/{_index}", well_known.skill_index, name="well-known-skill"),
    path(f"skills/<str:slug>/versions/<str:version>/{_index}", well_known.skill_index),
    path(f"publishers/<str:owner>/{_index}", well_known.publisher_index, name="well-known-publisher"),
    path(f"collections/<str:slug>/{_index}", well_known.collection_index, name="well-known-collection"),
    path(f"<str:owner>@<str:slug>/{_index}", well_known.skill_index),
    path(f"<str:owner>/<str:slug>/{_index}", well_known.skill_index),
    path(f"<str:owner>/{_index}", well_known.publisher_index),
    path("skills/<str:slug>/download/<str:name>", files.archive, name="archive"),
    path("api/apm/v1/packages/<str:owner>/<str:slug>/versions", apm.versions),
    path("api/apm/v1/packages/<str:owner>/<str:slug>/versions/<str:version>/download", apm.download),
    path("api/search", skills_cli.find),
    path("api/v1/search", clawhub.search),
    path("api/v1/resolve", clawhub.resolve),
    path("api/v1/download", files.download),
    path("api/v1/whoami", account.whoami),
    path("api/v1/stars/<str:slug>", account.stars),
    path("api/v1/blocklist", blocklist.blocklist),
    path("api/v1/blocklist/check", blocklist.blocklist_check),
    path("api/v1/log", log.head, name="log"),
    path("api/v1/log/checkpoint", log.checkpoint),
    path("api/v1/log/entries", log.entries, name="log-entries"),
    path("api/v1/log/inclusion", log.inclusion, name="log-inclusion"),
    path("api/v1/log/consistency", log.consistency),
    path("api/v1/collections", skill_sets.collections, name="api-collections"),
    path("api/v1/collections/<str:slug>", skill_sets.collection, name="api-collection"),
    path("api/v1/skills", clawhub.skills, name="api-skills"),
    path("api/v1/skills/-/<path:rest>", clawhub.not_offered("this call of clawhub")),
    path("api/v1/skills/search", vskill_cli.search),
    path("api/v1/skills/installs", vskill_cli.installs),
    path("api/v1/skills/check-updates", vskill_cli.check_updates),
    # Before the next, because no slug begins so.
    *_of_one_skill("api/v1/skills/@<str:owner>/<str:slug>"),
    *_of_one_skill("api/v1/skills/<str:slug>"),
    # The form in which vskill names a skill.
    *_of_one_skill("api/v1/skills/<str:owner>/<str:repo>/<str:slug>"),
]
