"""The pages and the API of the submissions."""

from __future__ import annotations

from django.urls import path, register_converter
from django.urls.converters import StringConverter

from marketplace.skills.slugs import RESERVED_SLUGS
from submissions.api import described
from submissions.api import many as api_many
from submissions.api import views as api
from submissions.api.staff import blocks, operating, reviewing
from submissions.claiming import clawhub_transfers
from submissions.claiming import views as claiming
from submissions.external_scans import views as external_scans
from submissions.following import views as following
from submissions.notifications import feeds as notification_feeds
from submissions.notifications import pages as notifications
from submissions.pages import jobs as job_pages
from submissions.pages import live_status, views
from submissions.pages import submit as submit_page
from submissions.scan_again import clawhub_report, clawhub_scan
from submissions.scan_again import views as scan_again
from submissions.uploads import views as uploads
from submissions.uploads import withdraw_page, withdraw_views


class SlugOfSkill(StringConverter):
    """What may be the slug of a skill, and no word that addresses of the API have in its place."""

    regex = rf"(?!(?:{'|'.join(sorted(RESERVED_SLUGS))})$)[^/]+"


class NumberOfVersion(StringConverter):
    """What may be the number of a version, and no word that addresses of the API have in its place."""

    regex = r"(?!(?:diff|compare)$)[^/]+"


register_converter(SlugOfSkill, "skill_slug")
register_converter(NumberOfVersion, "version_number")

app_name = "submissions"
urlpatterns = [
    path("submit", submit_page.submit, name="submit"),
    path("account/publishers", claiming.own_publishers, name="own-publishers"),
    path("account/withdraw", withdraw_page.withdraw_skill, name="withdraw"),
    path("queue", views.queue, name="queue"),
    path("account/notifications", notifications.notifications, name="notifications"),
    path("account/notifications/confirm/<str:token>", notifications.confirm_address, name="confirm-address"),
    path("account/notifications/end/<str:token>", notifications.unsubscribe_from_mails, name="unsubscribe"),
    path("feeds/notifications.atom", notification_feeds.own_feed, name="own-feed"),
    path("feeds/notifications/<str:secret>.atom", notification_feeds.secret_feed, name="secret-feed"),
    path("submissions/<str:submission_id>", views.submission, name="submission"),
    path("submissions/<str:submission_id>/events", live_status.events, name="submission-events"),
    path("submissions/<str:submission_id>/appeal", views.appeal_against, name="appeal"),
    path("skills/<str:slug>/scan-again", scan_again.scan_again, name="scan-again"),
    path("api/v1/skills/<str:slug>/scan-again", scan_again.api_scan_again, name="api-scan-again"),
    path("jobs/<str:job_id>", job_pages.job, name="job"),
    path("jobs/<str:job_id>/stop", job_pages.stop, name="job-stop"),
    path("api/v1/openapi.json", described.openapi, name="openapi"),
    path("api/v1/submissions", api.submissions, name="api-submissions"),
    path("api/v1/submissions/<str:submission_id>", api.submission, name="api-submission"),
    path("api/v1/external-scans/<str:scan_id>", external_scans.result, name="external-scan"),
    path("api/v1/webhooks/<str:sender>", following.webhook, name="webhook"),
    path("api/v1/skills", uploads.skills, name="api-skills"),
    path("api/v1/skills/<skill_slug:slug>", withdraw_views.skill),
    path("api/v1/skills/<str:slug>/undelete", withdraw_views.undelete),
    path("api/v1/skills/<str:slug>/versions/<version_number:version>", withdraw_views.version),
    path("api/v1/skills/<str:slug>/versions/<str:version>/restore", withdraw_views.undelete),
    path("api/v1/skills/<skill_slug:slug>/transfer", clawhub_transfers.request_transfer),
    *(
        path(f"api/v1/skills/<skill_slug:slug>/transfer/{one}", clawhub_transfers.decide, {"decision": one})
        for one in ("accept", "reject", "cancel")
    ),
    *(
        path(f"api/v1/transfers/{one}", clawhub_transfers.transfers, {"direction": one})
        for one in ("incoming", "outgoing")
    ),
    path("api/v1/skills/-/scan", clawhub_scan.scan),
    path("api/v1/skills/-/scan/download/<str:slug>", clawhub_report.stored_report),
    path("api/v1/skills/-/scan/<str:scan_id>", clawhub_scan.scan_status),
    path("api/v1/skills/-/scan/<str:scan_id>/download", clawhub_scan.scan_download),
    path("api/v1/skills/-/upload-url", uploads.upload_url, name="upload-url"),
    path("api/v1/skills/-/upload/<str:ticket>", uploads.upload_file, name="upload-file"),
    path("api/v1/listings", api_many.listings, name="api-listings"),
    path("api/v1/listings/<str:listing_id>", api_many.listing, name="api-listing"),
    path("api/v1/jobs", api_many.jobs, name="api-jobs"),
    path("api/v1/jobs/<str:job_id>", api_many.job, name="api-job"),
    path("api/v1/jobs/<str:job_id>/stop", api_many.stop, name="api-job-stop"),
    path("api/v1/review", reviewing.waiting),
    path("api/v1/review/<str:submission_id>", reviewing.one),
    path("api/v1/review/<str:submission_id>/decision", reviewing.decision),
    path("api/v1/review/<str:submission_id>/undo", reviewing.undone),
    path("api/v1/operate/queue", operating.queue),
    path("api/v1/operate/submissions/<str:submission_id>", operating.submission),
    path("api/v1/operate/skills/<str:slug>", operating.skill),
    path("api/v1/operate/blocks", blocks.blocks),
    path("api/v1/operate/blocks/remove", blocks.unblock),
]
