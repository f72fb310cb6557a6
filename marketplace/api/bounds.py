"""The bounds of the parameters, which the views check and the description of the API states."""

from __future__ import annotations

from typing import Final

# Characters of a parameter.
LONGEST: Final = 512
LONGEST_CURSOR: Final = 2000
LONGEST_REPOSITORY: Final = 1024
# Of ``limit``: the default, and the highest that is answered; a higher number is taken as the highest.
SEARCH_LIMIT: Final = (25, 100)
LIST_LIMIT: Final = (25, 200)
VSKILL_SEARCH_LIMIT: Final = (7, 100)
COLLECTIONS_LIMIT: Final = (25, 100)
# Clients that know of no cursor read one page.
BLOCKLIST_LIMIT: Final = (1000, 1000)
# Skills in one question about updates.
MOST_CHECKED: Final = 200
