"""Uploads in the admin: who sent what, when and what became of it; operations are those of its submission."""

from __future__ import annotations

from typing import Any, ClassVar, Final

from django.contrib import admin
from django.contrib.admin.views.main import ChangeList
from django.contrib.auth import get_user_model
from django.db.models import Q, QuerySet
from django.http import HttpRequest
from django.template.defaultfilters import filesizeformat
from django.urls import reverse
from django.utils.html import format_html, format_html_join
from django.utils.safestring import SafeString

from marketplace.skills.publishers import ACCOUNTS, UPLOADS, publisher_of
from submissions.models import UploadedBundle
from submissions.operations import OPERATIONS, Operation
from submissions.presentation import submission_path
from submissions.store.records import no_such_submission
from submissions.uploads.standing import Standing, standings
from submissions.uploads.stored import CHANGELOG_OF_UPLOAD
from vskill.hidden_characters import visible
from vskill.operations_admin import OperationsAdmin
from vskill.worker_context import require_worker_env

_OF_SUBMISSIONS: Final = "submissions.change_submissionentry"


class _WithStandings(ChangeList):
    """A page of the list, whose rows all know how they stand."""

    def get_results(self, request: HttpRequest) -> None:
        super().get_results(request)
        _attach(list(self.result_list))


@admin.register(UploadedBundle)
class UploadAdmin(OperationsAdmin):
    """The uploads of an environment, newest first, with what their submissions came to."""

    list_display = ("skill", "publisher", "chosen_version", "uploaded_by", "state", "shown_size", "created_at")
    list_display_links = ("skill",)
    sortable_by = ()
    search_fields = ("account",)
    search_help_text = "The exact name of an account, or of a skill with who uploads it: ada/pdf-tools"
    ordering = ("-id",)
    actions = (*OPERATIONS,)
    fields = (
        *("skill", "publisher", "chosen_version", "uploaded_by", "created_at", "state", "reason", "submission"),
        *("changelog", "digest", "shown_size", "files"),
    )
    readonly_fields = fields
    operations: ClassVar[dict[str, Operation]] = OPERATIONS
    operate_template = "admin/submissions/operate_upload.html"

    def get_queryset(self, request: HttpRequest) -> QuerySet[Any]:
        """Return the uploads without their bytes."""
        rows: QuerySet[Any] = super().get_queryset(request)
        return rows.defer("content")

    def get_changelist(self, request: HttpRequest, **kwargs: Any) -> type[ChangeList]:
        """Return the list whose rows know how they stand."""
        return type("UploadList", (_WithStandings, super().get_changelist(request, **kwargs)), {})

    def search_condition(self, term: str) -> Q:
        """Return the condition for the name of an account, or for the address of a skill."""
        if "/" in term:
            address = term.lstrip("@")
            return Q(address__in=[f"{ACCOUNTS}{address}", f"{UPLOADS}{address}"])
        users = get_user_model()._default_manager.filter(username=term.lstrip("@"))
        return Q(account__in=list(users.values_list("pk", flat=True)))

    def has_operate_permission(self, request: HttpRequest) -> bool:
        """Return whether this operator may change submissions, which is what the operations do."""
        user: Any = request.user
        return bool(user.has_perm(_OF_SUBMISSIONS))

    def may_run(self, request: HttpRequest, operation: Operation) -> bool:
        """Return whether this operator has the permission that ``operation`` needs besides the common one."""
        user: Any = request.user
        return not operation.permission or bool(user.has_perm(operation.permission))

    def targets_of(self, request: HttpRequest, operation: Any, rows: QuerySet[Any]) -> list[Any]:
        """Return the chosen uploads, which know how they stand."""
        targets = list(rows)
        _attach(targets)
        return targets

    def name_of(self, target: UploadedBundle) -> str:
        """Return the name of the skill and of its version."""
        return f"{_slug(target)} {_standing(target).version}".strip()

    def run_on(self, operation: Operation, target: UploadedBundle, *, actor: str, reason: str) -> None:
        """Run an operation on the newest submission of an upload; ``actor`` and ``reason`` go into its history."""
        submission = _standing(target).submission
        if submission is None:
            raise no_such_submission(f"of {target}")
        operation.run(require_worker_env(), submission.id, actor=actor, reason=reason)

    @admin.display(description="skill")
    def skill(self, row: UploadedBundle) -> str:
        """Return the slug."""
        return _slug(row)

    @admin.display(description="publisher")
    def publisher(self, row: UploadedBundle) -> str:
        """Return the handle of the publisher that it is uploaded for."""
        return publisher_of(row.address).handle

    @admin.display(description="version")
    def chosen_version(self, row: UploadedBundle) -> str:
        """Return the version that the account chose."""
        return _standing(row).version or "—"

    @admin.display(description="uploaded by")
    def uploaded_by(self, row: UploadedBundle) -> str:
        """Return the name of the account that sent it."""
        return visible(_standing(row).account)

    @admin.display(description="state")
    def state(self, row: UploadedBundle) -> str:
        """Return the state of its newest submission in words."""
        return _standing(row).state

    @admin.display(description="size")
    def shown_size(self, row: UploadedBundle) -> str:
        """Return the size and the number of its files."""
        return f"{filesizeformat(row.size)} in {len(row.manifest)} files"

    @admin.display(description="reason")
    def reason(self, row: UploadedBundle) -> str:
        """Return the reason for its state."""
        submission = _standing(row).submission
        return (submission.text("reason") if submission is not None else "") or "—"

    @admin.display(description="in the words of its uploader")
    def changelog(self, row: UploadedBundle) -> str:
        """Return what its uploader says of the version."""
        submission = _standing(row).submission
        return (submission.text(CHANGELOG_OF_UPLOAD) if submission is not None else "") or "—"

    @admin.display(description="submission")
    def submission(self, row: UploadedBundle) -> SafeString | str:
        """Return links to the row of its newest submission and to the page that its uploader sees."""
        stands = _standing(row)
        if stands.submission is None:
            return "—"
        here = reverse("admin:submissions_submissionentry_change", args=[stands.entry])
        page = submission_path(stands.submission.id)
        return format_html('<a href="{}">{}</a>, <a href="{}">{}</a>', here, stands.submission.id, page, page)

    @admin.display(description="files")
    def files(self, row: UploadedBundle) -> SafeString:
        """Return its files as they were sent, each with size and SHA-256."""
        listed = ((visible(str(path), 200), size, sha256) for path, size, sha256 in row.manifest)
        return format_html_join("", "<p>{} <small>{} bytes, {}</small></p>", listed)


def _slug(row: UploadedBundle) -> str:
    return row.address.rpartition("/")[2]


def _standing(row: Any) -> Standing:
    if not hasattr(row, "standing"):
        _attach([row])
    found: Standing = row.standing
    return found


def _attach(rows: list[Any]) -> None:
    """Tell each row how it stands, for all of them at once."""
    found = standings(require_worker_env(), rows)
    for row in rows:
        row.standing = found[row.pk]
