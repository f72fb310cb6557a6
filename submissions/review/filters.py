"""The filters of the review queue, in the admin's list; its pages keep them."""

from __future__ import annotations

from typing import Any, Final

from django.db.models import Q
from django.http import HttpRequest

from submissions.review.queue import ORDER, condition, in_review, open_engines, open_rules
from submissions.verification.verdict import Verdict
from vskill.read_only_admin import ChoiceFilter
from vskill.worker_context import require_worker_env

_MOST_CHOICES: Final = 50


class QueueFilter(ChoiceFilter):
    """A filter of the review queue, which its pages keep."""

    def condition(self, choice: str) -> Q | None:
        """Return the condition of the filter that the class is named for."""
        return condition(require_worker_env(), str(self.parameter_name), choice)


class VerdictFilter(QueueFilter):
    """What the engines came to."""

    title = parameter_name = "verdict"
    choices_offered = tuple((str(one), str(one)) for one in (Verdict.HELD_HIGH, Verdict.HELD, Verdict.INCONCLUSIVE))


class RuleFilter(QueueFilter):
    """A rule that holds it."""

    title = parameter_name = "rule"

    def lookups(self, request: HttpRequest, model_admin: Any) -> list[tuple[str, str]]:
        """Return the rules that hold something now."""
        return [(one, one) for one in open_rules(require_worker_env(), _MOST_CHOICES)]


class EngineFilter(QueueFilter):
    """An engine that holds it."""

    title = parameter_name = "engine"

    def lookups(self, request: HttpRequest, model_admin: Any) -> list[tuple[str, str]]:
        """Return the engines that hold something now."""
        return [(one, one) for one in open_engines(require_worker_env(), _MOST_CHOICES)]


class OwnerFilter(QueueFilter):
    """The owner of its repository: the review page of a submission leads here."""

    title = parameter_name = "owner"

    def lookups(self, request: HttpRequest, model_admin: Any) -> list[tuple[str, str]]:
        """Return the owner that is chosen, if any, beside those of the strongest that are held."""
        first = in_review(require_worker_env()).order_by(*ORDER).values_list("repo_url", flat=True)[:200]
        owners = {address.partition("://")[2].rpartition("/")[0] for address in first}
        return [(one, one) for one in sorted({*owners, request.GET.get("owner", "")} - {""})][:_MOST_CHOICES]
