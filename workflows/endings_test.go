package workflows_test

import (
	"context"

	"go.temporal.io/sdk/client"

	"github.com/kandev/recovery/activities/calls"
	"github.com/kandev/recovery/recovery"
)

// verdictPeers are an inventory of one session, whose recorded process is gone,
// and a recorded server that is evaluated like this.
func verdictPeers(evaluation calls.Evaluation, others map[string]any) func(*stage) map[string]any {
	return func(*stage) map[string]any {
		peers := map[string]any{
			calls.TakeGuards:     records("s1"),
			calls.EvaluateServer: answer[calls.EvaluateInput](evaluation),
		}
		for name, peer := range others {
			peers[name] = peer
		}
		return peers
	}
}

// refused is the verdict on a server that answered and is left alone.
func refused(reason recovery.RefusalReason) calls.Evaluation {
	return calls.Evaluation{Verdict: recovery.VerdictRefused, Reason: reason}
}

var (
	adoptable    = calls.Evaluation{Verdict: recovery.VerdictAdoptable}
	incompatible = calls.Evaluation{
		Verdict: recovery.VerdictIncompatible, Reason: recovery.RefusedCapabilityIncompatibility,
		Advertised: []string{"old"}, Missing: []string{"new"},
	}
	stale   = map[string]recovery.SessionOutcome{"s1": recovery.OutcomeStale}
	unknown = map[string]recovery.SessionOutcome{"s1": recovery.OutcomeUnknown}
)

// withoutSurvival starts a pass with the capability off.
func withoutSurvival(ctx context.Context, s *stage) (client.WorkflowRun, error) {
	return s.engine.StartAdoption(ctx, 1, false)
}

// endings are the passes that adopt no server, and those whose adoption takes
// more than one attempt.
func endings() []branch {
	all := []branch{{
		name: "adoption-no-record", begin: firstPass,
		peers: func(*stage) map[string]any {
			return map[string]any{calls.LocateServer: answer[calls.Pass](calls.Located{})}
		},
		check: ends(pass{verdict: recovery.VerdictFresh, attempts: map[string]int{calls.EvaluateServer: 0, calls.StartServer: 1}}),
	}, {
		name: "adoption-nothing-listens", begin: firstPass,
		peers: verdictPeers(calls.Evaluation{Verdict: recovery.VerdictFresh}, nil),
		check: ends(pass{verdict: recovery.VerdictFresh, outcomes: stale}),
	}, {
		name: "adoption-no-answer", begin: firstPass,
		peers: verdictPeers(adoptable, map[string]any{
			calls.EvaluateServer: fail[calls.EvaluateInput, calls.Evaluation](errUnanswered),
		}),
		check: ends(pass{
			verdict: recovery.VerdictRefused, reason: recovery.RefusedNoAnswer, outcomes: stale,
			attempts: map[string]int{calls.EvaluateServer: 2},
		}),
	}}
	all = append(all, refusals()...)
	all = append(all, rotations()...)
	return append(all, endedServers()...)
}

// refusals are the servers that answered and did not prove to be ours.
func refusals() []branch {
	var all []branch
	for name, reason := range map[string]recovery.RefusalReason{
		"adoption-identity-mismatch":      recovery.RefusedIdentityMismatch,
		"adoption-credential-unavailable": recovery.RefusedCredentialUnavailable,
		"adoption-authentication-failure": recovery.RefusedAuthenticationFailure,
	} {
		all = append(all, branch{
			name: name, begin: firstPass, peers: verdictPeers(refused(reason), nil),
			check: ends(pass{verdict: recovery.VerdictRefused, reason: reason, outcomes: unknown, attempts: map[string]int{calls.StartServer: 1}}),
		})
	}
	return all
}

// rotations are what can become of the credential's replacement.
func rotations() []branch {
	return []branch{{
		name: "adoption-rotation-refused", begin: firstPass,
		peers: verdictPeers(adoptable, map[string]any{calls.RotateCredential: answer[calls.RotateInput](calls.Rotated{Refused: true})}),
		check: ends(pass{verdict: recovery.VerdictRefused, reason: recovery.RefusedCredentialRotationFailure, outcomes: unknown}),
	}, {
		name: "adoption-rotation-unanswered", begin: firstPass,
		peers: verdictPeers(adoptable, map[string]any{calls.RotateCredential: fail[calls.RotateInput, calls.Rotated](errUnanswered)}),
		check: ends(pass{
			verdict: recovery.VerdictRefused, reason: recovery.RefusedCredentialRotationFailure, outcomes: unknown,
			attempts: map[string]int{calls.RotateCredential: 2, calls.StoreCredential: 0},
		}),
	}, {
		name: "adoption-server-shutting-down", begin: firstPass,
		peers: verdictPeers(adoptable, map[string]any{calls.RotateCredential: answer[calls.RotateInput](calls.Rotated{ShuttingDown: true})}),
		check: ends(pass{verdict: recovery.VerdictFresh, outcomes: stale}),
	}, {
		name: "adoption-store-waited-for", begin: firstPass,
		peers: func(*stage) map[string]any {
			return map[string]any{
				calls.StoreCredential: func(ctx context.Context, _ calls.RotationInput) error {
					if attempt(ctx) < 3 {
						return errUnanswered
					}
					return nil
				},
				calls.ConfirmRotation: done[calls.RotationInput](errUnanswered),
			}
		},
		check: ends(pass{
			verdict:  recovery.VerdictAdoptable,
			attempts: map[string]int{calls.RotateCredential: 1, calls.StoreCredential: 3, calls.ConfirmRotation: 2},
		}),
	}}
}

// endedServers are the proven servers that cannot be used.
func endedServers() []branch {
	return []branch{{
		name: "adoption-incompatible-ended", begin: firstPass, peers: verdictPeers(incompatible, nil),
		check: ends(pass{
			verdict: recovery.VerdictIncompatible, reason: recovery.RefusedCapabilityIncompatibility, outcomes: stale,
			attempts: map[string]int{calls.EndServer: 1, calls.AwaitServerEnd: 1, calls.StartServer: 1},
		}),
	}, {
		name: "adoption-server-unended", begin: firstPass,
		peers: verdictPeers(incompatible, map[string]any{calls.EndServer: done[calls.EndInput](errUnanswered)}),
		check: ends(pass{
			verdict: recovery.VerdictIncompatible, reason: recovery.RefusedCapabilityIncompatibility, outcomes: unknown, unended: true,
			attempts: map[string]int{calls.EndServer: 2, calls.AwaitServerEnd: 0, calls.ProbeRecords: 0, calls.StartServer: 1},
		}),
	}, {
		name: "adoption-server-stays", begin: firstPass,
		peers: verdictPeers(incompatible, map[string]any{calls.AwaitServerEnd: done[calls.EndInput](refusal(calls.FailureStop))}),
		check: ends(pass{
			verdict: recovery.VerdictIncompatible, reason: recovery.RefusedCapabilityIncompatibility, outcomes: unknown, unended: true,
			attempts: map[string]int{calls.AwaitServerEnd: 1, calls.ProbeRecords: 0},
		}),
	}, {
		name: "adoption-off-ours", begin: withoutSurvival, peers: verdictPeers(adoptable, nil),
		check: ends(pass{verdict: recovery.VerdictOff, outcomes: stale, attempts: map[string]int{calls.EndServer: 1}}),
	}, {
		name: "adoption-off-stranger", begin: withoutSurvival, peers: verdictPeers(refused(recovery.RefusedIdentityMismatch), nil),
		check: ends(pass{
			verdict: recovery.VerdictOff, reason: recovery.RefusedIdentityMismatch, outcomes: stale,
			attempts: map[string]int{calls.EndServer: 0},
		}),
	}, {
		name: "adoption-off-no-record", begin: withoutSurvival,
		peers: verdictPeers(adoptable, map[string]any{calls.LocateServer: answer[calls.Pass](calls.Located{})}),
		check: ends(pass{verdict: recovery.VerdictOff, outcomes: stale, attempts: map[string]int{calls.EvaluateServer: 0}}),
	}}
}
