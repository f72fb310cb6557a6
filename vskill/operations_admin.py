"""Rows that operators change by named operations: chosen in the list, confirmed with a reason, done one by one."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, ClassVar, Final, Protocol

from django.contrib import messages
from django.contrib.auth import get_permission_codename
from django.core.exceptions import PermissionDenied
from django.db import DatabaseError
from django.db.models import QuerySet
from django.http import Http404, HttpRequest, HttpResponse, HttpResponseRedirect
from django.template.response import TemplateResponse
from django.urls import URLPattern, path, reverse

from vskill.errors import VskillError
from vskill.hidden_characters import reveal_hidden
from vskill.read_only_admin import ReadOnlyAdmin, row_numbers
from vskill.worker_context import require_worker_env

MOST_ROWS: Final = 1000
# Servers refuse long addresses.
MOST_IN_ADDRESS: Final = 100


class Operation(Protocol):
    """An operation as operators see it; the subclass of ``OperationsAdmin`` knows how to run it."""

    @property
    def name(self) -> str:
        """Return its name in addresses."""
        ...

    @property
    def label(self) -> str:
        """Return the text of its button."""
        ...

    @property
    def consequence(self) -> str:
        """Return what happens when it is confirmed."""
        ...


@dataclass(frozen=True)
class RowOperation:
    """An operation on a row; ``run`` takes the environment, the row, ``actor`` and ``reason``.

    ``label`` is the text of its button, and ``consequence`` is shown before it is confirmed.
    """

    name: str
    label: str
    consequence: str
    run: Callable[..., object]


class OperationsAdmin(ReadOnlyAdmin):
    """Offer operations on rows, each behind a page that asks for a reason.

    ``actions`` names the operations that the list offers. A target is what one run of an operation changes: a row,
    unless a subclass overrides ``targets_of``. The permission to change the model is the permission to operate.
    """

    operations: ClassVar[Mapping[str, Operation]]
    """Every operation by its name."""
    operate_template: ClassVar[str]
    """The confirmation page, which extends ``admin/operate.html`` and says how a ``target`` is shown."""

    def targets_of(
        self,
        request: HttpRequest,
        operation: Any,
        rows: QuerySet[Any],
    ) -> list[Any]:
        """Return the targets of ``operation`` among the ``rows`` that the address names."""
        return list(rows)

    def name_of(self, target: Any) -> str:
        """Return what messages call a target."""
        raise NotImplementedError

    def run_on(self, operation: Any, target: Any, *, actor: str, reason: str) -> None:
        """Run ``operation`` on one target; ``actor`` and ``reason`` are for its history.

        Overridden where an operation is no ``RowOperation``. A ``VskillError`` or ``DatabaseError`` becomes a message,
        and the next target follows.
        """
        operation.run(require_worker_env(), target, actor=actor, reason=reason)

    def has_operate_permission(self, request: HttpRequest) -> bool:
        """Return whether this operator may run operations."""
        user: Any = request.user
        return bool(user.has_perm(f"{self.opts.app_label}.{get_permission_codename('change', self.opts)}"))

    def operation_named(self, name: str) -> Operation | None:
        """Return the operation called ``name`` in addresses; a subclass may have more than ``operations``."""
        return self.operations.get(name)

    def may_run(self, request: HttpRequest, operation: Any) -> bool:
        """Return whether an operator who may run operations may run this one; unless overridden, any."""
        return True

    def offered_operations(self) -> list[Operation]:
        """Return the operations that the list of rows offers."""
        return [self.operations[str(name)] for name in self.actions or ()]

    def get_actions(self, request: HttpRequest) -> dict[str, Any]:
        """Return the operations that ``actions`` names, for operators who may run them."""
        if not self.has_operate_permission(request):
            return {}
        named = self.offered_operations()
        offered = [one for one in named if self.may_run(request, one)]
        return {one.name: (self._open(one.name), one.name, one.label) for one in offered}

    def get_urls(self) -> list[URLPattern]:
        """Add the confirmation page."""
        operate = path("operate/<str:name>/", self.admin_site.admin_view(self.operate), name=self._url_name("operate"))
        return [operate, *super().get_urls()]

    def operate(self, request: HttpRequest, name: str) -> HttpResponse:
        """Show the confirmation page of an operation, or run it on each target where a reason was posted.

        The field or query parameter ``ids`` lists primary keys, of which the first ``MOST_ROWS`` count.
        """
        if not self.has_operate_permission(request):
            raise PermissionDenied
        operation = self.operation_named(name)
        if operation is None:
            raise Http404
        if not self.may_run(request, operation):
            raise PermissionDenied
        posted = request.POST.get("ids", "")
        numbers = row_numbers(posted or request.GET.get("ids", ""))[:MOST_ROWS]
        targets = self.targets_of(request, operation, self.get_queryset(request).filter(pk__in=numbers))
        reason = reveal_hidden(request.POST.get("reason", "").replace("\0", "").strip())
        if request.method == "POST" and reason:
            self._run(request, operation, targets, reason)
            return HttpResponseRedirect(reverse(f"admin:{self._url_name('changelist')}"))
        missing = request.method == "POST"
        return self._confirmation(request, operation, targets, posted=posted, missing_reason=missing)

    def _confirmation(
        self, request: HttpRequest, operation: Operation, targets: list[Any], *, posted: str, missing_reason: bool
    ) -> HttpResponse:
        """Return the confirmation page, whose form sends the ids that are ``posted`` rather than in the address."""
        context = {
            **self.admin_site.each_context(request),
            "title": operation.label,
            "operation": operation,
            "targets": targets,
            "missing_reason": missing_reason,
            "posted_ids": posted,
            "operate_address": self.operate_address(operation.name),
            "opts": self.opts,
        }
        return TemplateResponse(request, self.operate_template, context)

    def operate_address(self, name: str) -> str:
        """Return the address of an operation's confirmation page, without the rows."""
        return reverse(f"admin:{self._url_name('operate')}", args=[name])

    def _run(self, request: HttpRequest, operation: Operation, targets: list[Any], reason: str) -> None:
        actor = request.user.get_username()
        done = 0
        for target in targets:
            try:
                self.run_on(operation, target, actor=actor, reason=reason)
                done += 1
            except (VskillError, DatabaseError) as error:
                self.message_user(request, f"{self.name_of(target)}: {error}", messages.ERROR)
        if done:
            self.message_user(request, f"{operation.label}: {done} of {len(targets)} done.", messages.SUCCESS)

    def _open(self, name: str) -> Callable[..., HttpResponse]:
        def action(_admin: Any, request: HttpRequest, queryset: QuerySet[Any]) -> HttpResponse:
            numbers = list(queryset.values_list("pk", flat=True)[: MOST_ROWS + 1])
            if len(numbers) > MOST_ROWS:
                text = f"More than {MOST_ROWS:,} were chosen. These are the first; choose again afterwards."
                self.message_user(request, text, messages.WARNING)
            ids = ",".join(str(pk) for pk in numbers[:MOST_ROWS])
            if len(numbers) <= MOST_IN_ADDRESS:
                return HttpResponseRedirect(f"{self.operate_address(name)}?ids={ids}")
            operation = self.operation_named(name)
            if operation is None:
                raise Http404
            rows = self.get_queryset(request).filter(pk__in=numbers[:MOST_ROWS])
            targets = self.targets_of(request, operation, rows)
            return self._confirmation(request, operation, targets, posted=ids, missing_reason=False)

        return action

    def _url_name(self, page: str) -> str:
        return f"{self.opts.app_label}_{self.opts.model_name}_{page}"
