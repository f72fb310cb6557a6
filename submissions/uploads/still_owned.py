"""Whether an upload for a claimed publisher may still be published: the claim may have ended while it was checked."""

from __future__ import annotations

from django.contrib.auth import get_user_model

from marketplace.ownership.rights import owns
from marketplace.skills.publishers import ACCOUNTS, is_uploaded, publisher_of
from submissions.store.records import Submission
from submissions.uploads.stored import ACCOUNT_OF_UPLOAD, account_of_files
from vskill.environments import WorkerEnv


def why_not_theirs(env: WorkerEnv, submission: Submission) -> str:
    """Return why the account that uploaded a submission may not publish it for its publisher any more, or ''.

    What comes from a repository, and what an account uploads as itself, is not asked for. The account is known by its
    number, since another may have its name by now. Call it on a database thread.
    """
    address = submission.text("repoUrl")
    if not is_uploaded(address) or address.startswith(ACCOUNTS):
        return ""
    number = submission.value.get(ACCOUNT_OF_UPLOAD)
    if not isinstance(number, int):
        number = account_of_files(env, address, submission.text("sourceDigest"))
    accounts = get_user_model()._default_manager.filter(is_active=True)
    account = accounts.filter(pk=number).first() if number is not None else None
    publisher = publisher_of(address).identity
    if account is not None and owns(account, env, publisher):
        return ""
    return (
        f"the account that uploaded it does not have the claim of {publisher} any more. Grant the claim again and "
        "approve this, or reject it."
    )
