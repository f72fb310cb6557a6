"""The pages and the API of the submissions."""

from __future__ import annotations

from django.urls import path

from submissions import api, views

app_name = "submissions"
urlpatterns = [
    path("submit", views.submit, name="submit"),
    path("queue", views.queue, name="queue"),
    path("submissions/<str:submission_id>", views.submission, name="submission"),
    path("api/v1/submissions", api.submissions, name="api-submissions"),
    path("api/v1/submissions/<str:submission_id>", api.submission, name="api-submission"),
]
