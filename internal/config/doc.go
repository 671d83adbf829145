// Package config reads the backend's settings from a YAML file and the
// environment, which wins. What is out of range, unparsable or unknown is
// rejected at startup with its key, its value and what would be accepted; nothing
// is clamped (S-005.8).
package config
