"""The variables about what visitors read: how long it may take, and on how many threads."""

from __future__ import annotations

from typing import Final

from vskill.variable_kinds import duration, integer
from vskill.variables import Variable, grouped

VISITOR_VARIABLES: Final[list[Variable]] = grouped(
    "What visitors read",
    Variable(
        "VSKILL_VISITOR_SECONDS",
        duration(above=0),
        5.0,
        "time that the database may work on one page or API call; then the statement is ended and answered 503",
    ),
    Variable(
        "VSKILL_VISITOR_WAIT",
        duration(above=0),
        5.0,
        "time that a page or API call waits until a thread is free; then it is answered 503",
    ),
    Variable(
        "VSKILL_PAGE_WORKERS",
        integer(minimum=1),
        4,
        "threads of a process that read single things for visitors: skills, archives, submissions",
    ),
    Variable(
        "VSKILL_LIST_WORKERS",
        integer(minimum=1),
        2,
        "threads of a process that read many rows for visitors: lists, search, figures",
    ),
)
