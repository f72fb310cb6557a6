"""The URLs of repositories, each with and without ``.git`` at the end of its name."""

from __future__ import annotations

from django.urls import URLPattern, path

from marketplace.git import views

# A handle is never a hyphen alone.
_REPOSITORIES = ("git/-/<str:slug>", "git/<str:owner>/<str:slug>", "git/<str:owner>")

urlpatterns: list[URLPattern] = [
    path(f"{repository}{end}/{request}", view)
    for repository in _REPOSITORIES
    for end in (".git", "")
    for request, view in (("info/refs", views.refs), ("git-upload-pack", views.upload_pack))
]
