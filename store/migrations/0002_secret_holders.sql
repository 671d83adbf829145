-- +goose Up

-- Whose credential a secret is, so that it can go once that server is proven
-- gone. Empty for a secret that belongs to no control server, or whose server is
-- not known any more; such a secret stays.
ALTER TABLE secrets
    ADD COLUMN server_identity text NOT NULL DEFAULT '',
    ADD COLUMN pid             integer NOT NULL DEFAULT 0,
    ADD COLUMN process_start   text NOT NULL DEFAULT '';

UPDATE secrets s
SET server_identity = c.server_identity, pid = c.pid, process_start = c.process_start
FROM control_server_records c
WHERE c.installation_id = s.installation_id AND c.secret_ref = s.ref;

-- +goose Down

ALTER TABLE secrets DROP COLUMN server_identity, DROP COLUMN pid, DROP COLUMN process_start;
