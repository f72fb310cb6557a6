"""What can be wrong with a subscription that somebody asks for, or with its secret."""

from __future__ import annotations

from vskill.errors import VskillError


class SubscriptionRefused(VskillError):
    """A subscription that cannot be made as it was asked for; nothing was made."""

    code = "subscription_refused"


class NoSuchSubscription(VskillError):
    """There is no such subscription here; nothing was changed."""

    code = "no_such_subscription"


class SecretUnreadable(VskillError):
    """The secret of a webhook cannot be read; nothing was sent."""

    code = "secret_unreadable"
