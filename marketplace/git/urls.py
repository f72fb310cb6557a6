"""The URLs of lists of plugins, and of repositories, each with and without ``.git`` at the end of its name."""

from __future__ import annotations

from django.urls import URLPattern, path

from marketplace.git import plugin_lists, views

# A handle is never a hyphen alone.
_REPOSITORIES = ("git/-/<str:slug>", "git/<str:owner>/<str:slug>", "git/<str:owner>")

_repositories: list[URLPattern] = [
    path(f"{repository}{end}/{request}", view)
    for repository in _REPOSITORIES
    for end in (".git", "")
    for request, view in (("info/refs", views.refs), ("git-upload-pack", views.upload_pack))
]

urlpatterns: list[URLPattern] = [
    path("marketplace.json", plugin_lists.registry_plugins, name="plugins"),
    path(".claude-plugin/marketplace.json", plugin_lists.registry_plugins),
    path("skills/<str:slug>/marketplace.json", plugin_lists.skill_list, name="skill-plugins"),
    path("skills/<str:slug>/versions/<str:version>/marketplace.json", plugin_lists.skill_list),
    path("publishers/<str:handle>/marketplace.json", plugin_lists.publisher_list, name="publisher-plugins"),
    path("collections/<str:slug>/marketplace.json", plugin_lists.collection_list, name="collection-plugins"),
    *_repositories,
]
