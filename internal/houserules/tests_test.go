package houserules

import (
	"go/ast"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
)

// checksForLeaks reports whether one of the files has a TestMain that asks
// goleak.
func checksForLeaks(tests []sourceFile) bool {
	found := false
	for _, file := range tests {
		for _, decl := range file.ast.Decls {
			if f, ok := decl.(*ast.FuncDecl); ok && f.Name.Name == "TestMain" && f.Recv == nil {
				ast.Inspect(f, func(node ast.Node) bool {
					found = found || isSelector(node, "goleak", "VerifyTestMain") || isSelector(node, "goleak", "Find")
					return true
				})
			}
		}
	}
	return found
}

// realSleeps returns the calls of time.Sleep in the tests of a package that are
// not in a synctest bubble, where time is virtual. A test's own body is in none,
// nor are its sub-tests and goroutines. Any other function is taken to run in a
// bubble, if the package makes bubbles.
func realSleeps(tests []sourceFile) []string {
	bubbles := slices.ContainsFunc(tests, func(f sourceFile) bool {
		return slices.ContainsFunc(f.ast.Imports, func(i *ast.ImportSpec) bool { return i.Path.Value == `"testing/synctest"` })
	})
	var found []string
	for _, file := range tests {
		var path []ast.Node // from the file down to the node
		ast.Inspect(file.ast, func(node ast.Node) bool {
			if node == nil {
				path = path[:len(path)-1]
				return true
			}
			path = append(path, node)
			if isSelector(node, "time", "Sleep") && (!bubbles || inTestBody(path)) {
				found = append(found, file.at(node)+": sleeps in real time")
			}
			return true
		})
	}
	return found
}

// inTestBody reports whether the end of the path belongs to the body of a test,
// of a sub-test or of a goroutine that one of them starts.
func inTestBody(path []ast.Node) bool {
	for i, node := range slices.Backward(path) {
		switch node := node.(type) {
		case *ast.FuncDecl:
			return strings.HasPrefix(node.Name.Name, "Test")
		case *ast.FuncLit:
			call, ok := path[i-1].(*ast.CallExpr)
			if !ok {
				return false
			}
			selector, ok := call.Fun.(*ast.SelectorExpr)
			if call.Fun != node && !(ok && selector.Sel.Name == "Run") {
				return false
			}
		}
	}
	return false
}

// isSelector reports whether a node is the expression x.name.
func isSelector(node ast.Node, x, name string) bool {
	selector, ok := node.(*ast.SelectorExpr)
	if !ok || selector.Sel.Name != name {
		return false
	}
	of, ok := selector.X.(*ast.Ident)
	return ok && of.Name == x
}

func TestRealSleepsAreFound(t *testing.T) {
	withBubbles := parse(t, "a_test.go", `package p

import "testing/synctest"

func TestSleeps(t *testing.T) { time.Sleep(1) }

func TestSubtestSleeps(t *testing.T) {
	t.Run("", func(t *testing.T) { go func() { time.Sleep(1) }() })
}

func TestBubbles(t *testing.T) {
	synctest.Test(t, func(t *testing.T) { go func() { time.Sleep(1) }() })
	inBubble(t, func() { time.Sleep(1) })
	for _, step := range []func(){func() { time.Sleep(1) }} {
		inBubble(t, step)
	}
}

func pass() { time.Sleep(1) }
`)
	assert.Equal(t, []string{
		"a_test.go:5:33: sleeps in real time",
		"a_test.go:8:45: sleeps in real time",
	}, realSleeps([]sourceFile{withBubbles}))

	without := parse(t, "a_test.go", "package p\n\nfunc pass() { time.Sleep(1) }")
	assert.Len(t, realSleeps([]sourceFile{without}), 1)
}

func TestMissingLeakChecksAreFound(t *testing.T) {
	unchecked := parse(t, "a_test.go", `package p

func TestMain(m *testing.M) { os.Exit(m.Run()) }

func TestLeaks(t *testing.T) { goleak.VerifyNone(t) }
`)
	checked := parse(t, "main_test.go", `package p

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }
`)
	assert.False(t, checksForLeaks([]sourceFile{unchecked}))
	assert.True(t, checksForLeaks([]sourceFile{unchecked, checked}))
}

func TestTestsCheckForLeaksAndDoNotSleep(t *testing.T) {
	for _, dir := range repository(t) {
		if len(dir.tests) > 0 {
			assert.True(t, checksForLeaks(dir.tests), "%s: no TestMain with goleak.VerifyTestMain", dir.path)
		}
		if !dir.nested { // real servers take real time
			assert.Empty(t, realSleeps(dir.tests))
		}
	}
}
