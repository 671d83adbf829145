-- +goose Up

-- What says which permission requests wait is found without reading the
-- transcript that it is part of. Few events are of these kinds, so that the index
-- costs the others nothing.
CREATE INDEX agent_events_permissions ON agent_events (session_id, position)
    WHERE kind IN ('permission_request', 'permission_settled', 'agent_exited');

-- +goose Down

DROP INDEX agent_events_permissions;
