"""The tables of django-allauth are not in the admin: apps would keep their secrets in the database."""

from __future__ import annotations

from allauth.account.admin import EmailAddress
from allauth.socialaccount.admin import SocialAccount, SocialApp, SocialToken
from django.contrib import admin

for model in (EmailAddress, SocialAccount, SocialApp, SocialToken):
    if admin.site.is_registered(model):
        admin.site.unregister(model)
