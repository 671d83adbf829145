package instance

import "github.com/kandev/recovery/agentctl/workspace"

// Workspace returns what may be reached of an instance's files: the roots that
// it was created with (S-002.5). Looking at them is activity. It does not need
// the agent, which may have ended.
func (s *Supervisor) Workspace(id string) (*workspace.Workspace, error) {
	i, err := s.find(id)
	if err != nil {
		return nil, err
	}
	i.touch()
	return i.files, nil
}
