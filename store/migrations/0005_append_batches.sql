-- +goose Up

-- The one place where events are written, for one session or for several at
-- once, which then share a round trip and a flush of the log. It is a function for
-- the reason that append_events was one: its plans are kept by the server. That
-- one stays for backends of before that still run on this database.
--
-- A batch is the next counts[i] of the events. It is appended behind the cursor,
-- if the cursor is where the caller takes it to be, and its number is answered.
-- Otherwise nothing of it is written, and neither is anything of a batch whose
-- session somebody else has locked just now: no session waits for another.
--
-- A session's row is locked first, as everybody does, so that positions have no
-- hole and none becomes visible late; each statement sees what the last holder
-- of the lock committed.
-- +goose StatementBegin
CREATE FUNCTION append_batches(
    installation text, sessions text[], instances text[], cursors bigint[], counts bigint[],
    batches bigint[], seqs bigint[], kinds text[], turn_ids text[], times timestamptz[], payloads text[]
) RETURNS bigint[]
LANGUAGE plpgsql VOLATILE AS $$
DECLARE
    newest   bigint;
    ahead    bigint[] := array_fill(NULL::bigint, ARRAY[cardinality(sessions)]); -- position less number
    appended bigint[] := '{}';
BEGIN
    FOR i IN 1 .. cardinality(sessions) LOOP
        SELECT s.last_position INTO newest FROM task_sessions s
        WHERE s.installation_id = installation AND s.id = sessions[i]
        FOR NO KEY UPDATE SKIP LOCKED;
        CONTINUE WHEN NOT FOUND;

        UPDATE event_cursors c SET seq = cursors[i] + counts[i]
        WHERE c.installation_id = installation AND c.instance_id = instances[i]
          AND c.session_id = sessions[i] AND c.seq = cursors[i];
        CONTINUE WHEN NOT FOUND;

        UPDATE task_sessions s SET last_position = newest + counts[i]
        WHERE s.installation_id = installation AND s.id = sessions[i];
        ahead[i] := newest - cursors[i];
        appended := appended || i::bigint;
    END LOOP;

    INSERT INTO agent_events
        (installation_id, session_id, position, instance_id, seq, kind, turn_id, at, payload)
    SELECT installation, sessions[e.batch], e.seq + ahead[e.batch], instances[e.batch], e.seq,
           e.kind, e.turn_id, e.at, e.payload
    FROM unnest(batches, seqs, kinds, turn_ids, times, payloads) AS e (batch, seq, kind, turn_id, at, payload)
    WHERE ahead[e.batch] IS NOT NULL;

    RETURN appended;
END
$$;
-- +goose StatementEnd

-- +goose Down

DROP FUNCTION append_batches(
    text, text[], text[], bigint[], bigint[], bigint[], bigint[], text[], text[], timestamptz[], text[]);
