"""The schema as small ordered steps, each applied once, in one transaction with its number."""

from __future__ import annotations

import duckdb

from cotlab.core.errors import SchemaMismatch


def _create_runs(connection: duckdb.DuckDBPyConnection) -> None:
    connection.execute("""
        CREATE TABLE suites (digest VARCHAR, name VARCHAR, n INTEGER, file_sha256 VARCHAR,
            added_at TIMESTAMPTZ);
        CREATE TABLE items (suite VARCHAR, position INTEGER, id VARCHAR, question VARCHAR,
            answer VARCHAR, steps VARCHAR[], category VARCHAR, meta VARCHAR);
        CREATE TABLE runs (id VARCHAR, suite VARCHAR, suite_name VARCHAR, model VARCHAR,
            plan VARCHAR, plan_digest VARCHAR, config VARCHAR, code_version VARCHAR, output VARCHAR,
            redacted BOOLEAN, status VARCHAR, planned_at TIMESTAMPTZ, ended_at TIMESTAMPTZ,
            n_items INTEGER, revision INTEGER, asked BIGINT, hits BIGINT, failed BIGINT,
            spent_micro BIGINT, saved_micro BIGINT, note VARCHAR);
        CREATE TABLE constants (run VARCHAR, scorer VARCHAR, params_digest VARCHAR, value VARCHAR);
        CREATE TABLE ended (run VARCHAR, scorer VARCHAR, item VARCHAR, version INTEGER,
            params_digest VARCHAR, errors INTEGER, refusals INTEGER, ended_at TIMESTAMPTZ);
        CREATE TABLE scores (run VARCHAR, scorer VARCHAR, metric VARCHAR, item_id VARCHAR,
            step INTEGER, sample INTEGER, facet VARCHAR, value DOUBLE, status VARCHAR,
            reason VARCHAR, where_lo INTEGER, where_hi INTEGER, evidence VARCHAR[]);
        CREATE TABLE estimates (run VARCHAR, metric VARCHAR, facet VARCHAR, point DOUBLE, lo DOUBLE,
            hi DOUBLE, confidence DOUBLE, n INTEGER, n_undefined INTEGER, method VARCHAR,
            over_ VARCHAR, reason VARCHAR);
        """)


def _add_cost_estimate(connection: duckdb.DuckDBPyConnection) -> None:
    """Add the expected cost of a run and its prices, as JSON."""
    connection.execute("ALTER TABLE runs ADD COLUMN estimate VARCHAR")


def _add_review_tables(connection: duckdb.DuckDBPyConnection) -> None:
    """Add labels, queues, calibrators, policies, decisions, drift checks and the audit."""
    connection.execute("""
        CREATE SEQUENCE label_order;
        CREATE SEQUENCE audit_order;
        CREATE SEQUENCE choice_order;
        CREATE TABLE labels (id VARCHAR, run VARCHAR, item_id VARCHAR, rater VARCHAR, queue VARCHAR,
            reasoning VARCHAR, answer_correct BOOLEAN, modes VARCHAR[], note VARCHAR,
            flagged BOOLEAN, withdrawn BOOLEAN, origin VARCHAR, at_ TIMESTAMPTZ,
            seq BIGINT DEFAULT nextval('label_order'));
        CREATE VIEW current_labels AS
            SELECT * FROM (
                SELECT * FROM labels QUALIFY row_number() OVER (
                    PARTITION BY run, item_id, rater ORDER BY seq DESC
                ) = 1
            ) WHERE NOT withdrawn;
        CREATE TABLE queues (id VARCHAR, name VARCHAR, kind VARCHAR, made_at TIMESTAMPTZ,
            made_by VARCHAR, params VARCHAR);
        CREATE TABLE queue_items (queue VARCHAR, position INTEGER, run VARCHAR, item_id VARCHAR,
            raters INTEGER, gold VARCHAR, reason VARCHAR);
        CREATE TABLE calibrators (version INTEGER, method VARCHAR, params VARCHAR, weights VARCHAR,
            labels_digest VARCHAR, n INTEGER, n_positive INTEGER, report VARCHAR,
            made_at TIMESTAMPTZ, made_by VARCHAR, note VARCHAR);
        CREATE TABLE calibrator_choices (version INTEGER, at_ TIMESTAMPTZ, by_ VARCHAR,
            reason VARCHAR, seq BIGINT DEFAULT nextval('choice_order'));
        CREATE TABLE policies (version INTEGER, thresholds VARCHAR, capacity INTEGER,
            params VARCHAR, made_at TIMESTAMPTZ, made_by VARCHAR, reason VARCHAR);
        CREATE TABLE decisions (id VARCHAR, run VARCHAR, item_id VARCHAR, domain VARCHAR,
            r_raw DOUBLE, r_cal DOUBLE, action VARCHAR, reason VARCHAR, low DOUBLE, high DOUBLE,
            calibrator INTEGER, policy INTEGER, at_ TIMESTAMPTZ, by_ VARCHAR);
        CREATE TABLE drift_checks (id VARCHAR, reference VARCHAR, current VARCHAR, at_ TIMESTAMPTZ,
            by_ VARCHAR, alert BOOLEAN, reason VARCHAR, result VARCHAR);
        CREATE TABLE audit (at_ TIMESTAMPTZ, who VARCHAR, what VARCHAR, subject VARCHAR,
            before VARCHAR, after VARCHAR, reason VARCHAR,
            seq BIGINT DEFAULT nextval('audit_order'));
        """)


def _add_server_checks(connection: duckdb.DuckDBPyConnection) -> None:
    """Add what was found of the servers of runs; a check outside a run has the run ''."""
    connection.execute("""
        CREATE TABLE server_checks (run VARCHAR, provider VARCHAR, model VARCHAR, base_url VARCHAR,
            form VARCHAR, endpoint VARCHAR, server_version VARCHAR, findings VARCHAR,
            n_requests INTEGER, checked_at TIMESTAMPTZ, recorded_at TIMESTAMPTZ);
        """)


def _add_step_labels(connection: duckdb.DuckDBPyConnection) -> None:
    """Add what a rater says of the steps of a chain; older labels say nothing of them."""
    connection.execute("""
        ALTER TABLE labels ADD COLUMN steps_judged BOOLEAN;
        ALTER TABLE labels ADD COLUMN first_wrong_step INTEGER;
        ALTER TABLE labels ADD COLUMN step_verdicts VARCHAR[];
        ALTER TABLE labels ADD COLUMN faithful BOOLEAN;
        ALTER TABLE labels ADD COLUMN steps_digest VARCHAR;
        CREATE OR REPLACE VIEW current_labels AS
            SELECT * FROM (
                SELECT * FROM labels QUALIFY row_number() OVER (
                    PARTITION BY run, item_id, rater ORDER BY seq DESC
                ) = 1
            ) WHERE NOT withdrawn;
        """)


def _add_calibrator_kinds(connection: duckdb.DuckDBPyConnection) -> None:
    """Add what a calibrator predicts; the older ones predict whether a chain is acceptable."""
    connection.execute("ALTER TABLE calibrators ADD COLUMN kind VARCHAR DEFAULT 'chain'")


def _add_run_results(connection: duckdb.DuckDBPyConnection) -> None:
    """Add what is computed from a run when it ends, as JSON, with the rules that made it."""
    connection.execute("""
        CREATE TABLE run_results (run VARCHAR, kind VARCHAR, revision INTEGER, status VARCHAR,
            rules VARCHAR, value VARCHAR, made_at TIMESTAMPTZ);
        """)


def _add_run_names(connection: duckdb.DuckDBPyConnection) -> None:
    """Add what people give runs: a name, a note, and when one was archived."""
    connection.execute("""
        CREATE TABLE run_names (run VARCHAR, name VARCHAR, note VARCHAR, archived_at TIMESTAMPTZ);
        """)


MIGRATIONS = (
    _create_runs,
    _add_cost_estimate,
    _add_review_tables,
    _add_server_checks,
    _add_step_labels,
    _add_calibrator_kinds,
    _add_run_results,
    _add_run_names,
)


def migrate(connection: duckdb.DuckDBPyConnection) -> None:
    """Bring an empty or older file to the current schema.

    Raises
    ------
    SchemaMismatch
        If the file is newer than this code.
    """
    connection.execute("CREATE TABLE IF NOT EXISTS schema_version (version INTEGER)")
    version = _schema_version(connection)
    if version > len(MIGRATIONS):
        raise SchemaMismatch(version, len(MIGRATIONS))
    for number, step in enumerate(MIGRATIONS[version:], start=version + 1):
        connection.begin()
        try:
            step(connection)
            connection.execute("INSERT INTO schema_version VALUES (?)", [number])
        except BaseException:
            connection.rollback()
            raise
        connection.commit()


def is_schema_current(connection: duckdb.DuckDBPyConnection) -> bool:
    """Return whether the file has exactly this code's schema; works read-only."""
    try:
        return _schema_version(connection) == len(MIGRATIONS)
    except duckdb.CatalogException:
        return False


def _schema_version(connection: duckdb.DuckDBPyConnection) -> int:
    # all rows are fetched: an unfinished result keeps the connection from a query of another kind
    [(version,)] = connection.execute("SELECT max(version) FROM schema_version").fetchall()
    return int(version or 0)
