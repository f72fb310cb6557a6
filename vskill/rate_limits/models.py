"""The table of counts that processes share."""

from __future__ import annotations

from django.db import models


class RequestCount(models.Model):
    """How often something was done within one window of time, such as one client's downloads within a minute.

    ``namespace`` is the name of the environment. ``ends_at`` is when the window ends, in seconds since 1970: a count
    whose window has ended counts as 0, and begins anew with the next request.
    """

    namespace = models.CharField(max_length=64)
    key = models.CharField(max_length=200)
    count = models.BigIntegerField()
    ends_at = models.FloatField()

    class Meta:
        verbose_name = "count of requests"
        verbose_name_plural = "counts of requests"
        constraints = [models.UniqueConstraint(fields=["namespace", "key"], name="rate_limits_key")]
        indexes = [models.Index(fields=["ends_at"], name="rate_limits_ends_at")]

    def __str__(self) -> str:
        return f"{self.namespace}/{self.key}"
