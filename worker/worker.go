// Package worker runs the product's workflows and activities for one
// installation: what a backend embeds. It knows three task queues. The boot queue
// serves one boot's recovery pass and ends with its process. The user queue
// serves what users request, goes on with the next backend, and is opened only
// when the recovery pass of this boot is closed. The passthrough queue does the
// same for passthrough sessions, which recovery keeps nobody waiting for.
package worker

import (
	"fmt"

	"go.temporal.io/sdk/activity"
	"go.temporal.io/sdk/client"
	"go.temporal.io/sdk/interceptor"
	sdk "go.temporal.io/sdk/worker"
	"go.temporal.io/sdk/workflow"

	"github.com/kandev/recovery/activities"
	"github.com/kandev/recovery/activities/calls"
	"github.com/kandev/recovery/workflows"
)

// Activities are the peers that the workflows act upon; all are needed.
type Activities struct {
	Control   *activities.Control
	Inventory *activities.Inventory
	Instances *activities.Instances
	Sessions  *activities.Sessions
}

// Worker polls one task queue.
type Worker struct{ sdk sdk.Worker }

// eagerReservations lets an activity start with the answer that scheduled it;
// with the default of three, a pass over many sessions takes twice the time.
const eagerReservations = 50

// StartBoot serves the queue of one boot.
func StartBoot(c client.Client, installation, boot string, a Activities) (*Worker, error) {
	reservations := eagerReservations
	w := sdk.New(c, workflows.BootQueue(installation, boot), sdk.Options{
		MaxEagerActivityReservationsPerWorkflowTask: &reservations,
		MaxConcurrentWorkflowTaskPollers:            8,
		MaxConcurrentActivityTaskPollers:            8,
	})
	w.RegisterWorkflowWithOptions(workflows.Adoption, workflow.RegisterOptions{Name: workflows.TypeAdoption})
	registerStop(w, a.Instances, a.Sessions)
	register(w, map[string]any{
		calls.TakeGuards:         a.Inventory.TakeGuards,
		calls.ProbeRecords:       a.Inventory.ProbeRecords,
		calls.ClosePass:          a.Inventory.ClosePass,
		calls.ReconcileRecords:   a.Inventory.ReconcileRecords,
		calls.LocateServer:       a.Control.LocateServer,
		calls.EvaluateServer:     a.Control.EvaluateServer,
		calls.RotateCredential:   a.Control.RotateCredential,
		calls.StoreCredential:    a.Control.StoreCredential,
		calls.ConfirmRotation:    a.Control.ConfirmRotation,
		calls.StartServer:        a.Control.StartServer,
		calls.EndServer:          a.Control.EndServer,
		calls.AwaitServerEnd:     a.Control.AwaitServerEnd,
		calls.ReportPass:         a.Inventory.ReportPass,
		calls.EnumerateInstances: a.Instances.EnumerateInstances,
		calls.ObserveSession:     a.Instances.ObserveSession,
		calls.PublishSession:     a.Instances.PublishSession,
	})
	return start(w)
}

// StartUser serves the queue of what users request.
func StartUser(c client.Client, installation string, a Activities) (*Worker, error) {
	return startRequests(c, workflows.UserQueue(installation), a.Instances, a.Sessions)
}

// StartPassthrough serves the queue of what users request of passthrough
// sessions, with peers of which the source is the tied control server.
func StartPassthrough(c client.Client, installation string, instances *activities.Instances, sessions *activities.Sessions) (*Worker, error) {
	return startRequests(c, workflows.PassthroughQueue(installation), instances, sessions)
}

func startRequests(c client.Client, queue string, instances *activities.Instances, sessions *activities.Sessions) (*Worker, error) {
	w := sdk.New(c, queue, sdk.Options{
		Interceptors: []interceptor.WorkerInterceptor{&heartbeats{}},
	})
	w.RegisterWorkflowWithOptions(workflows.GuardedResume, workflow.RegisterOptions{Name: workflows.TypeGuardedResume})
	w.RegisterWorkflowWithOptions(workflows.Launch, workflow.RegisterOptions{Name: workflows.TypeLaunch})
	registerStop(w, instances, sessions)
	register(w, map[string]any{
		calls.BeginStart:     sessions.BeginStart,
		calls.CreateInstance: sessions.CreateInstance,
		calls.AwaitReady:     sessions.AwaitReady,
		calls.PublishStarted: sessions.PublishStarted,
		calls.AbandonStart:   sessions.AbandonStart,
	})
	return start(w)
}

// registerStop registers what every queue needs to end an agent.
func registerStop(w sdk.Worker, instances *activities.Instances, sessions *activities.Sessions) {
	w.RegisterWorkflowWithOptions(workflows.StopWithRetry, workflow.RegisterOptions{Name: workflows.TypeStopWithRetry})
	register(w, map[string]any{
		calls.StopInstance: instances.StopInstance,
		calls.FinishStop:   sessions.FinishStop,
	})
}

func register(w sdk.Worker, named map[string]any) {
	for name, fn := range named {
		w.RegisterActivityWithOptions(fn, activity.RegisterOptions{Name: name})
	}
}

func start(w sdk.Worker) (*Worker, error) {
	if err := w.Start(); err != nil {
		return nil, fmt.Errorf("start worker: %w", err)
	}
	return &Worker{sdk: w}, nil
}

// Stop stops polling and waits for running activities, bounded by the SDK's
// stop timeout. Agents are not touched.
func (w *Worker) Stop() { w.sdk.Stop() }
