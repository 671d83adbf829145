package architecture

import (
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// root is the module's directory, as seen from a test of this package.
const root = "../.."

var (
	identifier = regexp.MustCompile(`\b(?:[SO]-\d{3}\.\d+|[WRNB]-\d+)\b`)
	// span is "S-003.2 to S-003.5", or without the second prefix.
	span     = regexp.MustCompile(`\b((?:[SO]-\d{3}\.)|(?:[WRNB]-))(\d+) to (?:[A-Z]-(?:\d{3}\.)?)?(\d+)\b`)
	row      = regexp.MustCompile(`^\| ((?:[SO]-\d{3}\.|[WRNB]-)\d+) \|`)
	testName = regexp.MustCompile("`(\\w+\\.(?:Test|Fuzz)\\w+)`")
	state    = regexp.MustCompile(`^(?:done|later|partly: .+)$`)
)

// requirement is one row of docs/traceability.md.
type requirement struct {
	tests []string // directory.TestName
	state string
}

// The table of requirements names only tests that exist, has every identifier
// that a test claims to prove, has each once, and calls nothing done that no
// test proves.
func TestTraceability(t *testing.T) {
	table := traceability(t)
	tests, claimed := claims(t)
	for id, r := range table {
		require.Regexp(t, state, r.state, id)
		for _, name := range r.tests {
			require.Contains(t, tests, name, "%s names a test that does not exist", id)
		}
		if r.state == "done" {
			require.NotEmpty(t, r.tests, "%s is called done without a test", id)
		}
		if r.state == "later" {
			require.Empty(t, claimed[id], "%s is called later, and tests name it", id)
		}
	}
	for id, where := range claimed {
		require.Contains(t, table, id, "%v name an identifier that docs/traceability.md does not have", where)
	}
}

func traceability(t *testing.T) map[string]requirement {
	t.Helper()
	content, err := os.ReadFile(filepath.Join(root, "docs", "traceability.md"))
	require.NoError(t, err)
	table := map[string]requirement{}
	for line := range strings.Lines(string(content)) {
		found := row.FindStringSubmatch(line)
		if found == nil {
			continue
		}
		cells := strings.Split(strings.Trim(strings.TrimSpace(line), "|"), "|")
		require.Len(t, cells, 5, line)
		require.NotContains(t, table, found[1], "%s has two rows", found[1])
		r := requirement{state: strings.TrimSpace(cells[4])}
		for _, test := range testName.FindAllStringSubmatch(cells[3], -1) {
			r.tests = append(r.tests, test[1])
		}
		table[found[1]] = r
	}
	require.NotEmpty(t, table)
	return table
}

// claims returns every test of the module as directory.TestName, and by
// identifier the tests that name it in their comment or in a string, as a
// sub-test's name is.
func claims(t *testing.T) (tests map[string]bool, claimed map[string][]string) {
	t.Helper()
	tests, claimed = map[string]bool{}, map[string][]string{}
	err := filepath.WalkDir(root, func(path string, entry fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if entry.IsDir() && entry.Name() == ".git" {
			return fs.SkipDir
		}
		if !strings.HasSuffix(path, "_test.go") {
			return nil
		}
		file, err := parser.ParseFile(token.NewFileSet(), path, nil, parser.ParseComments)
		if err != nil {
			return err
		}
		for _, decl := range file.Decls {
			f, ok := decl.(*ast.FuncDecl)
			if !ok || f.Recv != nil || !isTest(f.Name.Name) {
				continue
			}
			name := filepath.Base(filepath.Dir(path)) + "." + f.Name.Name
			tests[name] = true
			for _, id := range named(t, f) {
				claimed[id] = append(claimed[id], name)
			}
		}
		return nil
	})
	require.NoError(t, err)
	return tests, claimed
}

func isTest(name string) bool {
	return strings.HasPrefix(name, "Test") || strings.HasPrefix(name, "Fuzz")
}

// named returns the identifiers in a test's comment and in its strings.
func named(t *testing.T, f *ast.FuncDecl) []string {
	t.Helper()
	texts := []string{f.Doc.Text()}
	ast.Inspect(f, func(n ast.Node) bool {
		if lit, ok := n.(*ast.BasicLit); ok && lit.Kind == token.STRING {
			texts = append(texts, lit.Value)
		}
		return true
	})
	var ids []string
	for _, text := range texts {
		text = strings.Join(strings.Fields(text), " ")
		ids = append(ids, identifier.FindAllString(text, -1)...)
		for _, s := range span.FindAllStringSubmatch(text, -1) {
			first, err := strconv.Atoi(s[2])
			require.NoError(t, err)
			last, err := strconv.Atoi(s[3])
			require.NoError(t, err)
			for n := first; n <= last; n++ {
				ids = append(ids, s[1]+strconv.Itoa(n))
			}
		}
	}
	return ids
}
