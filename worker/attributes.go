package worker

import (
	"context"
	"errors"

	"go.temporal.io/api/serviceerror"
	"go.temporal.io/sdk/client"
	"go.temporal.io/sdk/temporal"

	"github.com/kandev/recovery/workflows"
)

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
