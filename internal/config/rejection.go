package config

import (
	"fmt"
	"strings"
	"time"
)

// Rejection is one setting that was not accepted.
type Rejection struct {
	Key      string
	Env      string // environment variable of the same setting
	Value    string // as given; a secret is not shown
	Accepted string // in words
}

// Error names key, value and what is accepted.
func (r *Rejection) Error() string {
	return fmt.Sprintf("%s (%s) is %q, which was rejected; accepted: %s", r.Key, r.Env, r.Value, r.Accepted)
}

// UnknownError is a name that is no setting.
type UnknownError struct {
	Name    string
	Nearest string // setting that may have been meant
}

// Error names the setting that is nearest.
func (e *UnknownError) Error() string {
	return fmt.Sprintf("%s is not a setting; did you mean %s?", e.Name, e.Nearest)
}

func (f field) reject(value any) *Rejection {
	shown := fmt.Sprint(value)
	if value == nil {
		shown = ""
	}
	if f.secret && shown != "" {
		shown = "(not shown)"
	}
	return &Rejection{Key: f.key, Env: f.env, Value: shown, Accepted: f.accepted}
}

const (
	readTimeoutKey = "agentctl.recoveryReadTimeout"
	readRetriesKey = "agentctl.recoveryReadRetries"
	maxReadBudget  = 6 * time.Second
	budgetShare    = 5 // of the recovery deadline, one part
)

// checkReadBudget is the product rule of S-002.13: all attempts of one read fit
// into 6 s and into a fifth of the recovery deadline.
func checkReadBudget(a Agentctl) error {
	limit := min(maxReadBudget, a.RecoveryDeadline/budgetShare)
	attempts := time.Duration(a.ReadRetries) + 1
	if a.ReadTimeout <= limit/attempts {
		return nil
	}
	return &Rejection{
		Key:   readTimeoutKey + " × (" + readRetriesKey + " + 1)",
		Env:   envOf(readTimeoutKey) + ", " + envOf(readRetriesKey),
		Value: fmt.Sprintf("%s × %d", a.ReadTimeout, attempts),
		Accepted: fmt.Sprintf("a product of at most %s, the smaller of %s and a fifth of agentctl.recoveryDeadline (%s); lower the timeout or the retries, or raise the deadline",
			limit, maxReadBudget, a.RecoveryDeadline),
	}
}

func keys() []string             { return names(func(f field) string { return f.key }) }
func environmentNames() []string { return names(func(f field) string { return f.env }) }

func names(of func(field) string) []string {
	out := make([]string, 0, len(fields))
	for _, f := range fields {
		out = append(out, of(f))
	}
	return out
}

func envOf(key string) string {
	for _, f := range fields {
		if f.key == key {
			return f.env
		}
	}
	return ""
}

func unknown(name string, known []string) *UnknownError {
	nearest, least := "", -1
	for _, candidate := range known {
		if d := distance(strings.ToLower(name), strings.ToLower(candidate)); least < 0 || d < least {
			nearest, least = candidate, d
		}
	}
	return &UnknownError{Name: name, Nearest: nearest}
}

// distance counts the letters to insert, remove or replace between two names.
func distance(a, b string) int {
	row := make([]int, len(b)+1)
	for j := range row {
		row[j] = j
	}
	for i := 1; i <= len(a); i++ {
		diagonal := row[0]
		row[0] = i
		for j := 1; j <= len(b); j++ {
			cost := diagonal
			if a[i-1] != b[j-1] {
				cost++
			}
			diagonal = row[j]
			row[j] = min(cost, row[j]+1, row[j-1]+1)
		}
	}
	return row[len(b)]
}
