package recovery

// Source says where a restored value comes from. Each has exactly one
// (S-002.14); what is re-derived is never read from the instance.
type Source string

// Sources.
const (
	FromRecord   Source = "inventory_record"
	FromSession  Source = "session_row"
	FromListing  Source = "enumeration" // the instance as it was enumerated
	FromInstance Source = "instance"    // the adopted instance itself
	FromProfile  Source = "profile"     // as it is now, by the recorded profile id
	FromRunEnv   Source = "runtime_environment"
)

// Value names one value that re-tracking restores.
type Value string

// Restored values.
const (
	ValueSession         Value = "session_id"
	ValueTask            Value = "task_id"
	ValueWorkspace       Value = "workspace"
	ValueProfile         Value = "profile_id"
	ValueTaskEnvironment Value = "task_environment_id"
	ValueInstance        Value = "instance_id"
	ValueRoots           Value = "workspace_roots"
	ValueRunEnv          Value = "runtime_environment"
	ValueProviderSession Value = "provider_session_id"
	ValueRunID           Value = "run_id"
	ValueAgent           Value = "agent"
	ValueCommand         Value = "command"
	ValueHistory         Value = "history_setting"
)

// Restored declares one value.
type Restored struct {
	Value  Value
	Source Source
	// MayBeEmpty: an empty value is legitimate, not absent (S-002.4).
	MayBeEmpty bool
}

// RestoredValues is the one declaration of what re-tracking restores and from
// where (S-002.3, S-002.14). Reconstruction walks it.
func RestoredValues() []Restored {
	return []Restored{
		{Value: ValueSession, Source: FromRecord},
		{Value: ValueTask, Source: FromRecord},
		{Value: ValueWorkspace, Source: FromRecord},
		{Value: ValueProfile, Source: FromRecord},
		{Value: ValueTaskEnvironment, Source: FromSession},
		{Value: ValueInstance, Source: FromListing},
		{Value: ValueRoots, Source: FromInstance, MayBeEmpty: true},
		{Value: ValueRunEnv, Source: FromInstance, MayBeEmpty: true},
		{Value: ValueProviderSession, Source: FromInstance},
		{Value: ValueRunID, Source: FromRunEnv, MayBeEmpty: true},
		{Value: ValueAgent, Source: FromProfile},
		{Value: ValueCommand, Source: FromProfile},
		{Value: ValueHistory, Source: FromProfile, MayBeEmpty: true},
	}
}

// Missing walks the declaration and returns, in its order, the values that
// their source has read and found absent. Present reports a value's presence;
// it is asked once per value.
func Missing(present func(Value) (there, empty bool)) []string {
	var missing []string
	for _, r := range RestoredValues() {
		there, empty := present(r.Value)
		if !there || (empty && !r.MayBeEmpty) {
			missing = append(missing, string(r.Value))
		}
	}
	return missing
}
