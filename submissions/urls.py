"""The pages and the API of the submissions."""

from __future__ import annotations

from django.urls import URLPattern, URLResolver

app_name = "submissions"
urlpatterns: list[URLPattern | URLResolver] = []
