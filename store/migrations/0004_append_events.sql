-- +goose Up

-- The one place where events are written. It is a function because a statement
-- is planned each time it is sent (no connection keeps it: a transaction pooler
-- may be in between), and planning these four takes longer than running them; a
-- function's plans are kept by the server. Sent alone it is a transaction of one
-- round trip.
--
-- It appends events behind the cursor, if the cursor is where the caller takes
-- it to be, and moves it. Otherwise it answers false and changes nothing. The
-- session's row is locked first, as everybody does, so that positions have no
-- hole and none becomes visible late; each statement sees what the last holder
-- of the lock committed.
-- +goose StatementBegin
CREATE FUNCTION append_events(
    installation text, session text, instance text, cursor_at bigint,
    kinds text[], turn_ids text[], times timestamptz[], payloads text[]
) RETURNS boolean
LANGUAGE plpgsql VOLATILE AS $$
DECLARE
    newest bigint;
    n      bigint := cardinality(kinds);
BEGIN
    SELECT s.last_position INTO newest FROM task_sessions s
    WHERE s.installation_id = installation AND s.id = session
    FOR NO KEY UPDATE;

    UPDATE event_cursors c SET seq = cursor_at + n
    WHERE c.installation_id = installation AND c.instance_id = instance
      AND c.session_id = session AND c.seq = cursor_at;
    IF NOT FOUND THEN
        RETURN false;
    END IF;

    INSERT INTO agent_events
        (installation_id, session_id, position, instance_id, seq, kind, turn_id, at, payload)
    SELECT installation, session, newest + u.number, instance, cursor_at + u.number,
           u.kind, u.turn_id, u.at, u.payload
    FROM unnest(kinds, turn_ids, times, payloads) WITH ORDINALITY AS u (kind, turn_id, at, payload, number);

    UPDATE task_sessions s SET last_position = newest + n
    WHERE s.installation_id = installation AND s.id = session;
    RETURN true;
END
$$;
-- +goose StatementEnd

-- +goose Down

DROP FUNCTION append_events(text, text, text, bigint, text[], text[], timestamptz[], text[]);
