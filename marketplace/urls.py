"""The URLs of the marketplace: its API and its pages."""

from __future__ import annotations

from django.urls import URLPattern, URLResolver, include, path

from marketplace.badges import views as badges
from marketplace.crawlers import views as crawlers
from marketplace.feeds import views as feeds
from marketplace.mcp import views as mcp
from marketplace.pages import collection_views, compare_views, owner_views, views
from marketplace.visitor_reports import views as reports

app_name = "marketplace"
urlpatterns: list[URLPattern | URLResolver] = [
    # Before the pages, so that no page shadows a URL of the API.
    path("", include("marketplace.api.urls")),
    path("", include("marketplace.git.urls")),
    path("mcp", mcp.endpoint, name="mcp"),
    *(path(f"feeds/{kind}.atom", feeds.feed, {"kind": kind}, name=f"feed-{kind}") for kind in feeds.KINDS),
    path("publishers/<str:handle>/feed.atom", feeds.publisher_feed, name="publisher-feed"),
    path("sitemap.xml", crawlers.sitemap, name="sitemap"),
    path("sitemap/<str:part>", crawlers.sitemap_part, name="sitemap-part"),
    path("robots.txt", crawlers.robots),
    path("llms.txt", crawlers.llms),
    path("", views.home, name="home"),
    path("skills", views.skills, name="skills"),
    path("skills/<str:slug>", views.skill, name="skill"),
    path("skills/<str:slug>/versions/<str:version>", views.version_page, name="skill-version"),
    path("skills/<str:slug>/scan", views.scan, name="scan"),
    path("skills/<str:slug>/compare", compare_views.version_changes, name="version-changes"),
    path("skills/<str:slug>/files", views.files, name="files"),
    path("skills/<str:slug>/files/<path:path>", views.file, name="file"),
    path("skills/<str:slug>/images/<path:path>", views.image, name="image"),
    path("skills/<str:slug>/report", reports.report_skill, name="report-skill"),
    path("reports/<str:reference>", reports.report_state, name="report"),
    path("skills/<str:slug>/badge.svg", badges.badge, name="badge"),
    path("skills/<str:slug>/card", badges.card, name="card"),
    path("oembed", badges.oembed, name="oembed"),
    path("collections", collection_views.collections, name="collections"),
    path("collections/<str:slug>", collection_views.collection, name="collection"),
    path("compare", compare_views.compare, name="compare"),
    path("publishers/<str:handle>", views.publisher, name="publisher"),
    # As clients write a publisher and its skill.
    path("@<str:handle>", owner_views.owner, name="owner"),
    path("@<str:handle>/<str:slug>", owner_views.owned_skill, name="owned-skill"),
    path("about/verification", views.verification, name="verification"),
    path("about/api", views.api, name="api"),
    path("favicon.ico", views.favicon),
]
