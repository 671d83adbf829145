package worker

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/cenkalti/backoff/v5"
	enumspb "go.temporal.io/api/enums/v1"
	"go.temporal.io/api/operatorservice/v1"
	"go.temporal.io/sdk/client"
	"go.temporal.io/sdk/temporal"

	"github.com/kandev/recovery/workflows"
)

// attributes are the search attributes that a namespace must know.
var attributes = []temporal.SearchAttributeKey{
	workflows.AttributeInstallation, workflows.AttributeSession,
	workflows.AttributeOutcome, workflows.AttributeRefusal,
}

// ErrAttributeType: the namespace has a search attribute of that name and
// another type, so that the product's cannot be used there.
var ErrAttributeType = errors.New("search attribute of another type")

// RegisterAttributes makes the namespace know the product's search attributes
// (W-5, B-25). Where they are known it only looks. It returns ErrAttributeType,
// or the error of a server that is not reached or does not allow it; then
// workflows are to be started without attributes (Engine.Attributes).
//
// Backends of several installations may boot in a new namespace at the same
// time. Two registrations at once can leave a name with two columns of the
// index, one of which no search reads, so they take turns.
func RegisterAttributes(ctx context.Context, c client.Client, namespace string) error {
	_, err := backoff.Retry(ctx, func() (struct{}, error) {
		missing, err := missingAttributes(ctx, c.OperatorService(), namespace)
		if err == nil && len(missing) > 0 {
			err = inTurn(ctx, c, func() error { return addMissing(ctx, c.OperatorService(), namespace) })
		}
		if err != nil && !temporal.IsWorkflowExecutionAlreadyStartedError(err) {
			err = backoff.Permanent(err)
		}
		return struct{}{}, err
	}, backoff.WithBackOff(backoff.NewConstantBackOff(turnInterval)), backoff.WithMaxElapsedTime(0))
	return err
}

func addMissing(ctx context.Context, operator operatorservice.OperatorServiceClient, namespace string) error {
	missing, err := missingAttributes(ctx, operator, namespace)
	if err != nil || len(missing) == 0 {
		return err
	}
	if _, err := operator.AddSearchAttributes(ctx, &operatorservice.AddSearchAttributesRequest{
		Namespace: namespace, SearchAttributes: missing,
	}); err != nil {
		return fmt.Errorf("add search attributes: %w", err)
	}
	return nil
}

func missingAttributes(ctx context.Context, operator operatorservice.OperatorServiceClient, namespace string) (map[string]enumspb.IndexedValueType, error) {
	known, err := operator.ListSearchAttributes(ctx, &operatorservice.ListSearchAttributesRequest{Namespace: namespace})
	if err != nil {
		return nil, fmt.Errorf("list search attributes: %w", err)
	}
	missing := map[string]enumspb.IndexedValueType{}
	for _, attribute := range attributes {
		switch typ, found := known.GetCustomAttributes()[attribute.GetName()]; {
		case !found:
			missing[attribute.GetName()] = attribute.GetValueType()
		case typ != attribute.GetValueType():
			return nil, fmt.Errorf("%w: %s", ErrAttributeType, attribute.GetName())
		}
	}
	return missing, nil
}

// A turn is a workflow that no worker runs: there is one of its id at a time.
const (
	turnID   = "search-attributes"
	turnType = "SearchAttributes"
	// turnBound ends the turn of a backend that died in it.
	turnBound = 10 * time.Second
	// turnInterval is how often a backend asks whether it is its turn.
	turnInterval = 100 * time.Millisecond
)

// inTurn runs f while no other backend of the namespace does. It returns an
// already-started error, and does not run f, when another one does.
func inTurn(ctx context.Context, c client.Client, f func() error) error {
	turn, err := c.ExecuteWorkflow(ctx, client.StartWorkflowOptions{
		ID: turnID, TaskQueue: turnID, WorkflowRunTimeout: turnBound,
		WorkflowIDConflictPolicy:                 enumspb.WORKFLOW_ID_CONFLICT_POLICY_FAIL,
		WorkflowExecutionErrorWhenAlreadyStarted: true,
		StaticSummary:                            "registration of search attributes",
	}, turnType)
	if err != nil {
		return err
	}
	return errors.Join(f(), c.TerminateWorkflow(ctx, turn.GetID(), turn.GetRunID(), "registered"))
}
