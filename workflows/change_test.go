package workflows_test

import (
	"go.temporal.io/sdk/interceptor"
	"go.temporal.io/sdk/temporal"
	"go.temporal.io/sdk/workflow"
)

// change makes the workflows of today behave as if somebody had changed them.
type change struct {
	interceptor.WorkerInterceptorBase
	rename     map[string]string // activities that run in the place of others; empty: none
	twice      string            // an activity that runs two times
	unlabelled bool              // no search attribute is set
}

func (c *change) InterceptWorkflow(_ workflow.Context, next interceptor.WorkflowInboundInterceptor) interceptor.WorkflowInboundInterceptor {
	return &changedInbound{WorkflowInboundInterceptorBase: interceptor.WorkflowInboundInterceptorBase{Next: next}, change: c}
}

type changedInbound struct {
	interceptor.WorkflowInboundInterceptorBase
	change *change
}

func (i *changedInbound) Init(next interceptor.WorkflowOutboundInterceptor) error {
	return i.Next.Init(&changedOutbound{WorkflowOutboundInterceptorBase: interceptor.WorkflowOutboundInterceptorBase{Next: next}, change: i.change})
}

type changedOutbound struct {
	interceptor.WorkflowOutboundInterceptorBase
	change *change
}

func (o *changedOutbound) ExecuteActivity(ctx workflow.Context, name string, args ...any) workflow.Future {
	if name == o.change.twice {
		o.Next.ExecuteActivity(ctx, name, args...)
	}
	renamed, found := o.change.rename[name]
	switch {
	case !found:
		return o.Next.ExecuteActivity(ctx, name, args...)
	case renamed != "":
		return o.Next.ExecuteActivity(ctx, renamed, args...)
	}
	none, settable := workflow.NewFuture(ctx)
	settable.SetValue(nil)
	return none
}

func (o *changedOutbound) UpsertTypedSearchAttributes(ctx workflow.Context, updates ...temporal.SearchAttributeUpdate) error {
	if o.change.unlabelled {
		return nil
	}
	return o.Next.UpsertTypedSearchAttributes(ctx, updates...)
}

// witness sees what a replayed workflow returns.
type witness struct {
	interceptor.WorkerInterceptorBase
	result any
}

func (w *witness) InterceptWorkflow(_ workflow.Context, next interceptor.WorkflowInboundInterceptor) interceptor.WorkflowInboundInterceptor {
	return &witnessed{WorkflowInboundInterceptorBase: interceptor.WorkflowInboundInterceptorBase{Next: next}, by: w}
}

type witnessed struct {
	interceptor.WorkflowInboundInterceptorBase
	by *witness
}

func (w *witnessed) ExecuteWorkflow(ctx workflow.Context, in *interceptor.ExecuteWorkflowInput) (any, error) {
	result, err := w.Next.ExecuteWorkflow(ctx, in)
	w.by.result = result
	return result, err
}
