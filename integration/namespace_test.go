package integration

import (
	"testing"

	"github.com/stretchr/testify/require"
	enumspb "go.temporal.io/api/enums/v1"
	"go.temporal.io/api/operatorservice/v1"
	"go.temporal.io/sdk/client"

	"github.com/kandev/recovery/internal/stack/temporaltest"
	"github.com/kandev/recovery/workflows"
)

// B-25, W-5: a backend recovers and starts agents in a namespace in which nothing
// has been registered, and its passes can be found there by their outcome. Where
// a search attribute's name is taken by another type, it does so without them.
func TestANamespaceOfItsOwn(t *testing.T) {
	for name, c := range map[string]struct {
		taken map[string]enumspb.IndexedValueType
		found bool
	}{
		"brand-new": {found: true},
		"name taken": {taken: map[string]enumspb.IndexedValueType{
			workflows.AttributeInstallation.GetName(): enumspb.INDEXED_VALUE_TYPE_KEYWORD,
			workflows.AttributeOutcome.GetName():      enumspb.INDEXED_VALUE_TYPE_INT,
		}},
	} {
		t.Run(name, func(t *testing.T) {
			engine, namespace := temporaltest.Namespace(t)
			if len(c.taken) > 0 {
				_, err := engine.OperatorService().AddSearchAttributes(t.Context(),
					&operatorservice.AddSearchAttributesRequest{Namespace: namespace, SearchAttributes: c.taken})
				require.NoError(t, err)
			}
			w := newWorld(t)
			w.settings["TEMPORAL_NAMESPACE"] = namespace
			b := w.start().serving()
			w.agent("agent")
			pass := w.completed(engine, workflows.AdoptionID(b.status.Installation))
			installation, found := pass.TypedSearchAttributes.GetKeyword(workflows.AttributeInstallation)
			outcome, _ := pass.TypedSearchAttributes.GetKeywordList(workflows.AttributeOutcome)
			require.Equal(t, c.found, found)
			if found {
				require.Equal(t, b.status.Installation, installation)
				require.Equal(t, []string{"fresh"}, outcome)
			}
		})
	}
}

// completed waits until the workflow is, and describes it.
func (w *world) completed(c client.Client, id string) *client.WorkflowExecutionDescription {
	w.t.Helper()
	var described *client.WorkflowExecutionDescription
	w.eventually(id+" is completed", func() bool {
		var err error
		described, err = c.DescribeWorkflow(w.t.Context(), id, "")
		return err == nil && described.Status == enumspb.WORKFLOW_EXECUTION_STATUS_COMPLETED
	})
	return described
}
