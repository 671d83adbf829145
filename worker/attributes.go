package worker

import (
	"context"
	"errors"
	"fmt"

	enumspb "go.temporal.io/api/enums/v1"
	"go.temporal.io/api/operatorservice/v1"
	"go.temporal.io/api/serviceerror"
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
// (W-5, B-25). It changes nothing where they are known, and may run at several
// backends at once. It returns ErrAttributeType, or the error of an operator
// service that is not reached or does not allow it; then workflows are to be
// started without attributes (Engine.Attributes).
func RegisterAttributes(ctx context.Context, operator operatorservice.OperatorServiceClient, namespace string) error {
	missing, err := missingAttributes(ctx, operator, namespace)
	if err != nil || len(missing) == 0 {
		return err
	}
	_, refused := operator.AddSearchAttributes(ctx, &operatorservice.AddSearchAttributesRequest{
		Namespace: namespace, SearchAttributes: missing,
	})
	if refused == nil {
		return nil
	}
	// Another backend may have come first: what counts is that they are there.
	missing, err = missingAttributes(ctx, operator, namespace)
	if err != nil || len(missing) > 0 {
		return errors.Join(fmt.Errorf("register search attributes: %w", refused), err)
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

// labels are the attributes of a workflow of this installation, none where the
// namespace does not know them. Session is empty for a workflow that serves all.
func (e *Engine) labels(session string) temporal.SearchAttributes {
	if !e.Attributes {
		return temporal.SearchAttributes{}
	}
	updates := []temporal.SearchAttributeUpdate{workflows.AttributeInstallation.ValueSet(e.Installation)}
	if session != "" {
		updates = append(updates, workflows.AttributeSession.ValueSet(session))
	}
	return temporal.NewSearchAttributes(updates...)
}

// execute starts a workflow. A node of the cluster that has not learned the
// attributes yet calls the whole request invalid; then nothing was started, and
// the workflow is started without them (B-25).
func (e *Engine) execute(ctx context.Context, options client.StartWorkflowOptions, workflowType string, input any) (client.WorkflowRun, error) {
	run, err := e.Client.ExecuteWorkflow(ctx, options, workflowType, input)
	var invalid *serviceerror.InvalidArgument
	if options.TypedSearchAttributes.Size() == 0 || !errors.As(err, &invalid) {
		return run, err
	}
	options.TypedSearchAttributes = temporal.SearchAttributes{}
	return e.Client.ExecuteWorkflow(ctx, options, workflowType, input)
}
