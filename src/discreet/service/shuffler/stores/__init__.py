"""Where the shuffler keeps reports until a batch is complete: SQLite, or PostgreSQL."""

from discreet.errors import InvalidInputError
from discreet.service.configs import At, nothing_happens
from discreet.service.protocol.charter import Charter
from discreet.service.shuffler.stores.base import Store

__all__ = ["Store", "open_store"]


def open_store(where: str, charter: Charter, at: At = nothing_happens) -> Store:
    """The store of a study, made if there is none.

    Args:
        where: the path of a file, or ``postgresql://...``.
        charter: of the study; a store of another one is refused.
        at: called before and after every commit.
    """
    if where.startswith(("postgresql://", "postgres://")):
        from discreet.service.shuffler.stores.postgres import PostgresStore

        return PostgresStore(where, charter, at)
    if "://" in where:
        raise InvalidInputError(f"Expected a path or postgresql://..., got store={where!r}.")
    from discreet.service.shuffler.stores.sqlite import SqliteStore

    return SqliteStore(where, charter, at)
