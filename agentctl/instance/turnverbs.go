package instance

import "github.com/kandev/recovery/agentctl/wire"

// Prompt opens a turn. The same key again answers the same turn and whether it
// is still open, and sends nothing (B-17).
func (s *Supervisor) Prompt(id, key string, request wire.PromptRequest) (wire.Turn, error) {
	i, err := s.find(id)
	if err != nil {
		return wire.Turn{}, err
	}
	if err := checkPrompt(key, request); err != nil {
		return wire.Turn{}, err
	}
	return i.prompt(key, request)
}

// prompt answers a known key in every state, and opens a turn only while the
// agent is ready. It holds the instance's lock, so that a stop for idleness
// either sees the turn or has begun before it.
func (i *instance) prompt(key string, request wire.PromptRequest) (wire.Turn, error) {
	i.mu.Lock()
	defer i.mu.Unlock()
	if t, ok := i.turns.known(key); ok {
		return t, nil
	}
	if err := i.takesRequests(); err != nil {
		return wire.Turn{}, err
	}
	t, err := i.turns.start(key, func(turnID string) error {
		return i.agent.Prompt(turnID, key, request.Blocks)
	})
	return t, asWire(err, wire.CodeNotReady, "the agent takes no prompt any more")
}

// Cancel asks the agent to end the open turn; its end is recorded when the
// agent reports it.
func (s *Supervisor) Cancel(id string) error {
	i, err := s.ready(id)
	if err != nil {
		return err
	}
	return asWire(i.agent.Cancel(), wire.CodeNotReady, "the agent takes no request any more")
}

// AnswerPermission settles a permission request, once.
func (s *Supervisor) AnswerPermission(id, requestID string, answer wire.PermissionAnswer) error {
	if answer.Cancelled == (answer.OptionID != "") {
		return refuse(wire.CodeBadRequest, "an answer either names an option or cancels")
	}
	i, err := s.ready(id)
	if err != nil {
		return err
	}
	return asWire(i.agent.AnswerPermission(requestID, answer), wire.CodeNotReady, "the agent takes no answer any more")
}

// TurnOutcome returns the last terminal outcome that was not acknowledged.
func (s *Supervisor) TurnOutcome(id string) (wire.KeptOutcome, error) {
	i, err := s.find(id)
	if err != nil {
		return wire.KeptOutcome{}, err
	}
	return wire.KeptOutcome{Outcome: i.turns.outcome()}, nil
}

// AckTurnOutcome discards the kept outcome if it is that turn's; another turn
// id changes nothing (S-004.6).
func (s *Supervisor) AckTurnOutcome(id, turnID string) error {
	i, err := s.find(id)
	if err != nil {
		return err
	}
	i.turns.acknowledge(turnID)
	return nil
}

// ready finds an instance whose agent takes requests, and notes the activity.
func (s *Supervisor) ready(id string) (*instance, error) {
	i, err := s.find(id)
	if err != nil {
		return nil, err
	}
	i.mu.Lock()
	defer i.mu.Unlock()
	return i, i.takesRequests()
}

// takesRequests notes the activity if the agent is ready; the lock is held.
func (i *instance) takesRequests() error {
	if i.state != wire.InstanceReady {
		return refuse(wire.CodeNotReady, "the agent is %s", i.state)
	}
	i.active = i.clock()
	return nil
}
