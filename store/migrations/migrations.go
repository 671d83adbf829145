// Package migrations embeds the steps of the database schema, NNNN_words.sql.
// A step that was released is never edited; a new one follows it.
package migrations

import "embed"

// Files are the steps in goose's SQL format.
//
//go:embed *.sql
var Files embed.FS
