"""The admins that lie in rooms of their own, where Django looks for them."""

from __future__ import annotations

from vskill.accounts.admin import AccountAdmin
from vskill.accounts.role_admin import RoleGrantAdmin
from vskill.accounts.team_admin import TeamAdmin
from vskill.entry_admin import KVEntryAdmin
from vskill.sign_in import admin

__all__ = ["AccountAdmin", "KVEntryAdmin", "RoleGrantAdmin", "TeamAdmin", "admin"]
