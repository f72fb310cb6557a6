"""The pages and the API of the marketplace."""

from __future__ import annotations

from django.urls import URLPattern, URLResolver

app_name = "marketplace"
urlpatterns: list[URLPattern | URLResolver] = []
