package calls

import (
	"go/ast"
	"go/parser"
	"go/token"
	"path/filepath"
	"reflect"
	"regexp"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/kandev/recovery/recovery"
)

// payloads are every input and result that a history records.
var payloads = []any{
	Pass{}, GuardsTaken{}, Located{}, EvaluateInput{}, Evaluation{}, RotateInput{}, Rotated{}, RotationInput{},
	ProbeInput{}, Probed{}, Closed{}, EndInput{}, ReportInput{}, Started{}, Enumerated{}, SessionInput{}, Observation{}, Published{},
	ReconcileInput{}, Reconciled{}, AdoptionInput{}, AdoptionReport{}, StopInput{}, StopResult{},
	StopInstanceInput{}, FinishStopInput{}, ResumeInput{}, StartIntent{}, AbandonInput{}, ResumeResult{},
}

// forbidden names fields that would carry what a history must not hold.
var forbidden = regexp.MustCompile(`(?i)credential|token|secret|nonce|path|root|env|workspace|worktree|home|endpoint|registry|cache|stderr|prompt|command|argv|fingerprint`)

// allowed are names that only look like it.
var allowed = map[string]bool{"PromptRepeated": true}

// W-4: no type that a history records has a field for a secret, a path, an
// address or raw output, and none has a field that could hold anything at all.
func TestPayloadsHoldNothingSecret(t *testing.T) {
	seen := map[reflect.Type]bool{}
	for _, p := range payloads {
		walk(t, reflect.TypeOf(p), seen)
	}
	walked := map[string]bool{}
	for typ := range seen {
		walked[typ.Name()] = true
	}
	for _, name := range declaredStructs(t) {
		require.True(t, walked[name], "%s is not among the payloads of this test", name)
	}
	require.True(t, seen[reflect.TypeOf(recovery.SessionOutcome(""))], "the walk reaches nested types")
}

// declaredStructs lists the struct types that this package declares.
func declaredStructs(t *testing.T) []string {
	t.Helper()
	files, err := filepath.Glob("*.go")
	require.NoError(t, err)
	var names []string
	for _, file := range files {
		parsed, err := parser.ParseFile(token.NewFileSet(), file, nil, 0)
		require.NoError(t, err)
		for _, decl := range parsed.Decls {
			general, ok := decl.(*ast.GenDecl)
			if !ok {
				continue
			}
			for _, spec := range general.Specs {
				if typ, ok := spec.(*ast.TypeSpec); ok {
					if _, isStruct := typ.Type.(*ast.StructType); isStruct {
						names = append(names, typ.Name.Name)
					}
				}
			}
		}
	}
	return names
}

func walk(t *testing.T, typ reflect.Type, seen map[reflect.Type]bool) {
	if seen[typ] {
		return
	}
	seen[typ] = true
	switch typ.Kind() {
	case reflect.Pointer, reflect.Slice, reflect.Array:
		require.NotEqual(t, reflect.Uint8, typ.Elem().Kind(), "%s holds raw bytes", typ)
		walk(t, typ.Elem(), seen)
	case reflect.Map:
		walk(t, typ.Key(), seen)
		walk(t, typ.Elem(), seen)
	case reflect.Struct:
		for field := range typ.Fields() {
			require.False(t, forbidden.MatchString(field.Name) && !allowed[field.Name], "%s.%s", typ, field.Name)
			walk(t, field.Type, seen)
		}
	case reflect.Interface, reflect.Func, reflect.Chan, reflect.UnsafePointer:
		t.Errorf("%s could hold anything", typ)
	}
}
