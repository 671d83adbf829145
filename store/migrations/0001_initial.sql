-- +goose Up

CREATE TABLE installations (
    id         text PRIMARY KEY,
    created_at timestamptz NOT NULL DEFAULT clock_timestamp()
);

CREATE TABLE agent_profiles (
    installation_id text NOT NULL REFERENCES installations,
    id              text NOT NULL,
    agent           text NOT NULL,
    command         text[] NOT NULL,
    env             text NOT NULL,              -- JSON object
    history_mode    text NOT NULL,
    updated_at      timestamptz NOT NULL DEFAULT clock_timestamp(),
    PRIMARY KEY (installation_id, id)
);

CREATE TABLE tasks (
    installation_id text NOT NULL REFERENCES installations,
    id              text NOT NULL,
    title           text NOT NULL,
    state           text NOT NULL,
    created_at      timestamptz NOT NULL DEFAULT clock_timestamp(),
    updated_at      timestamptz NOT NULL DEFAULT clock_timestamp(),
    PRIMARY KEY (installation_id, id)
);

CREATE TABLE task_sessions (
    installation_id     text NOT NULL,
    id                  text NOT NULL,
    task_id             text NOT NULL,
    task_environment_id text NOT NULL,
    profile_id          text NOT NULL,
    workspace           text NOT NULL,
    roots               text[] NOT NULL,
    passthrough         boolean NOT NULL,
    state               text NOT NULL,
    state_version       bigint NOT NULL DEFAULT 0,
    prior_state         text NOT NULL DEFAULT '',
    attempt             bigint NOT NULL DEFAULT 0,
    cause               text NOT NULL DEFAULT '',
    last_position       bigint NOT NULL DEFAULT 0,  -- newest agent_events.position
    metadata            jsonb NOT NULL DEFAULT '{}',
    created_at          timestamptz NOT NULL DEFAULT clock_timestamp(),
    updated_at          timestamptz NOT NULL DEFAULT clock_timestamp(),
    PRIMARY KEY (installation_id, id),
    FOREIGN KEY (installation_id, task_id) REFERENCES tasks,
    FOREIGN KEY (installation_id, profile_id) REFERENCES agent_profiles
);
CREATE INDEX task_sessions_by_task ON task_sessions (installation_id, task_id);

-- Append-only: what became of a session's state, numbered by its version.
CREATE TABLE session_transitions (
    installation_id text NOT NULL,
    session_id      text NOT NULL,
    version         bigint NOT NULL,
    from_state      text NOT NULL,
    to_state        text NOT NULL,
    cause           text NOT NULL,
    boot_id         text NOT NULL,
    turn_id         text NOT NULL,
    at              timestamptz NOT NULL DEFAULT clock_timestamp(),
    PRIMARY KEY (installation_id, session_id, version),
    FOREIGN KEY (installation_id, session_id) REFERENCES task_sessions
);

CREATE TABLE turns (
    installation_id text NOT NULL,
    session_id      text NOT NULL,
    number          bigint NOT NULL,             -- order within the session
    key             text NOT NULL,
    turn_id         text,                        -- null until the control server gave one
    state           text NOT NULL,
    blocks          text NOT NULL,               -- JSON array
    stop_reason     text NOT NULL DEFAULT '',
    error           text NOT NULL DEFAULT '',
    created_at      timestamptz NOT NULL DEFAULT clock_timestamp(),
    ended_at        timestamptz,
    PRIMARY KEY (installation_id, session_id, number),
    UNIQUE (installation_id, session_id, key),
    UNIQUE (installation_id, session_id, turn_id),
    FOREIGN KEY (installation_id, session_id) REFERENCES task_sessions
);
CREATE UNIQUE INDEX turns_one_open ON turns (installation_id, session_id)
    WHERE state IN ('RECORDED', 'OPEN');

-- The recovery inventory. One row per session; it outlives its executions.
CREATE TABLE executors_running (
    installation_id    text NOT NULL,
    session_id         text NOT NULL,
    runtime            text NOT NULL DEFAULT 'standalone',
    agent_execution_id text NOT NULL DEFAULT '',
    ended_execution_id text NOT NULL DEFAULT '', -- the newest that was given up; it never begins again
    generation         bigint NOT NULL DEFAULT 0,
    resume_token       text NOT NULL DEFAULT '',
    worktree           text NOT NULL DEFAULT '',
    profile_id         text NOT NULL DEFAULT '',
    server_identity    text NOT NULL DEFAULT '',
    pid                integer NOT NULL DEFAULT 0,
    process_start      text NOT NULL DEFAULT '',
    created_by_boot    text NOT NULL DEFAULT '',
    tracked_by_boot    text NOT NULL DEFAULT '',
    stop_request_id    text NOT NULL DEFAULT '',
    stop_requested_at  timestamptz,
    started_at         timestamptz,
    updated_at         timestamptz NOT NULL DEFAULT clock_timestamp(),
    PRIMARY KEY (installation_id, session_id),
    FOREIGN KEY (installation_id, session_id) REFERENCES task_sessions
);

CREATE TABLE secrets (
    installation_id text NOT NULL REFERENCES installations,
    ref             text NOT NULL,
    sealed          bytea NOT NULL,
    updated_at      timestamptz NOT NULL DEFAULT clock_timestamp(),
    PRIMARY KEY (installation_id, ref)
);

CREATE TABLE control_server_records (
    installation_id text PRIMARY KEY REFERENCES installations,
    server_identity text NOT NULL,
    endpoint        text NOT NULL,
    fingerprint     text NOT NULL,
    rotation_id     bigint NOT NULL,
    secret_ref      text NOT NULL,               -- no foreign key: a missing secret is an answer of its own
    capabilities    text[] NOT NULL,
    log_path        text NOT NULL,
    pid             integer NOT NULL,
    process_start   text NOT NULL,
    boot_id         text NOT NULL,
    updated_at      timestamptz NOT NULL DEFAULT clock_timestamp()
);

-- Written at the rate at which agents talk, under the lock of the session's
-- row: no foreign keys, and no index that no query needs.
CREATE TABLE agent_events (
    installation_id text NOT NULL,
    session_id      text NOT NULL,
    position        bigint NOT NULL,
    instance_id     text NOT NULL,
    seq             bigint NOT NULL,
    kind            text NOT NULL,
    turn_id         text NOT NULL,
    at              timestamptz NOT NULL,
    payload         text NOT NULL,               -- JSON, byte for byte; '' is none
    PRIMARY KEY (session_id, position),
    UNIQUE (instance_id, seq)
);

CREATE TABLE event_cursors (
    installation_id text NOT NULL,
    instance_id     text NOT NULL,
    session_id      text NOT NULL,
    seq             bigint NOT NULL,             -- newest committed number
    PRIMARY KEY (installation_id, instance_id),
    FOREIGN KEY (installation_id, session_id) REFERENCES task_sessions
);

CREATE TABLE recovery_outcomes (
    installation_id text NOT NULL REFERENCES installations,
    boot_id         text NOT NULL,
    pass            bigint NOT NULL,
    session_id      text NOT NULL,
    outcome         text NOT NULL,
    instance_id     text NOT NULL,
    state           text NOT NULL,
    detail          text NOT NULL,
    at              timestamptz NOT NULL DEFAULT clock_timestamp(),
    PRIMARY KEY (installation_id, boot_id, pass, session_id)
);

-- +goose Down

DROP TABLE recovery_outcomes, event_cursors, agent_events, control_server_records, secrets,
    executors_running, turns, session_transitions, task_sessions, tasks, agent_profiles, installations;
