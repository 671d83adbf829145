package wire

// Routes of the control server. Patterns with {id}, {key} and {rid} follow the
// standard library's ServeMux syntax.
const (
	RouteHealth       = "/health"
	RouteIdentity     = "/identity"
	RouteHandshake    = "/api/v1/handshake"
	RouteProve        = "/api/v1/ownership/prove"
	RouteRotate       = "/api/v1/ownership/rotate"
	RouteConfirm      = "/api/v1/ownership/confirm"
	RouteClaim        = "/api/v1/ownership/claim"
	RouteShutdown     = "/api/v1/ownership/shutdown"
	RouteDetails      = "/api/v1/ownership/details"
	RouteMemory       = "/api/v1/memory"
	RouteInstances    = "/api/v1/instances"
	RouteInstance     = "/api/v1/instances/{id}"
	RouteEvents       = "/api/v1/instances/{id}/events"
	RouteTurn         = "/api/v1/instances/{id}/turns/{key}"
	RouteCancel       = "/api/v1/instances/{id}/cancel"
	RoutePermission   = "/api/v1/instances/{id}/permissions/{rid}"
	RouteTurnOutcome  = "/api/v1/instances/{id}/turn-outcome"
	RouteAckOutcome   = "/api/v1/instances/{id}/turn-outcome/ack"
	RouteStartup      = "/api/v1/instances/{id}/startup"
	HeaderCredential  = "Authorization" // "Bearer <credential>"
	QueryEventsAfter  = "after"
	MaxRequestBytes   = 4 << 20 // largest request body accepted
	MaxChallengeBytes = 32      // exact length of a proof challenge
	TLSExporterLabel  = "EXPORTER-kandev-ownership-proof"
	TLSExporterBytes  = 32
	EnvInstanceMarker = "KANDEV_INSTANCE_MARKER" // in every agent's environment
	EnvRunID          = "KANDEV_RUN_ID"
)

// Capabilities that a control server of this build advertises, and that a
// backend may require. Identity retrieval and the ownership shutdown are
// offered by every server and are not negotiated (O-004.6).
const (
	CapabilityRotation     = "ownership.rotation"
	CapabilityEvents       = "events.numbered"
	CapabilityTurnOutcome  = "turns.outcome"
	CapabilityIdempotency  = "requests.idempotent"
	CapabilityPermissions  = "permissions.outstanding"
	CapabilityTombstones   = "instances.tombstones"
	CapabilityStartupState = "instances.startup"
	CapabilityWorkspace    = "workspace.confined"
)

// Capabilities returns the set that this build advertises and requires, sorted.
func Capabilities() []string {
	return []string{
		CapabilityEvents, CapabilityStartupState, CapabilityTombstones,
		CapabilityRotation, CapabilityPermissions, CapabilityIdempotency, CapabilityTurnOutcome, CapabilityWorkspace,
	}
}
