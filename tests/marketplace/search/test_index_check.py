"""The index of the search is compared with the documents, and built anew where it lacks something."""

from __future__ import annotations

import pytest
from asgiref.sync import async_to_sync
from django.db import connection

from marketplace.skills.answers import search_sync
from submissions.recovery.problems import Kind
from submissions.recovery.verify_store import verify_store
from tests.marketplace.factories import publish_example
from vskill.environments import WorkerEnv

pytestmark = pytest.mark.django_db(transaction=True)

SET_READY = "UPDATE pg_index SET indisready = %s WHERE indexrelid = 'marketplace_searchdocument_words'::regclass"


def publish_unindexed(env: WorkerEnv) -> None:
    """Publish a skill that the index of the search does not know afterwards."""
    with connection.cursor() as cursor:
        if connection.vendor == "sqlite":
            publish_example(env, name="unseen", description="Never indexed.")
            cursor.execute("INSERT INTO marketplace_searchfts(marketplace_searchfts) VALUES ('delete-all')")
        else:
            # The database adds to no index that is not ready.
            cursor.execute(SET_READY, [False])
            publish_example(env, name="unseen", description="Never indexed.")
            cursor.execute(SET_READY, [True])


def test_an_index_that_lacks_a_skill_is_found_and_built_anew(env: WorkerEnv) -> None:
    publish_example(env, name="seen")
    assert async_to_sync(verify_store)(env).problems == []
    publish_unindexed(env)
    # PostgreSQL reads a table as small as this one without its index.
    assert search_sync(env, "never") == [] or connection.vendor == "postgresql"

    (found,) = async_to_sync(verify_store)(env).problems
    assert (found.kind, found.subject, found.repaired) == (Kind.SEARCH, "index of the search", False)
    (mended,) = async_to_sync(verify_store)(env, repair=True).problems
    assert mended.repaired
    assert async_to_sync(verify_store)(env).problems == []
    assert [hit.skill.slug for hit in search_sync(env, "never")] == ["unseen"]
