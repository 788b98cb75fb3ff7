"""PostgreSQL keeps what was committed, and nothing else."""

from __future__ import annotations

from understudy.testing.services import Postgres


def test_committed_rows_survive_a_kill_and_others_do_not(postgres: Postgres) -> None:
    import psycopg

    with psycopg.connect(postgres.address, autocommit=True) as connection:
        connection.execute("CREATE TABLE counts (word text PRIMARY KEY, count bigint)")
        connection.execute("INSERT INTO counts VALUES ('kept', 1)")
    open_one = psycopg.connect(postgres.address)
    open_one.execute("INSERT INTO counts VALUES ('not committed', 2)")
    address = postgres.address
    postgres.kill()
    assert postgres.restart() == address
    with psycopg.connect(postgres.address) as connection:
        assert connection.execute("SELECT word, count FROM counts").fetchall() == [("kept", 1)]
    open_one.close()


def test_the_server_does_not_run_as_root(postgres: Postgres) -> None:
    # The first process is the server; those it starts come and go while we look.
    assert 0 not in postgres.processes[0].uids()
