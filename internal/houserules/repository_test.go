package houserules

import (
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// root is the repository, seen from this package.
const root = "../.."

// module is the path of the root module.
const module = "github.com/kube-safestore/kube-safestore"

// libraries are the packages that users import.
var libraries = []string{
	"token", "invalidation", "watcher", "safestore", "safestore/clientgo", "safestore/controller",
	"safestore/health", "safestore/debug", "safestore/prometheus",
}

// sourceFile is one parsed file.
type sourceFile struct {
	name string // without directory
	set  *token.FileSet
	ast  *ast.File
}

// at says where a node is.
func (f sourceFile) at(node ast.Node) string { return f.set.Position(node.Pos()).String() }

// sourceDir is the Go source of one directory.
type sourceDir struct {
	path         string // below the root, with slashes
	nested       bool   // in a module nested in the root module
	files, tests []sourceFile
}

// name returns the name of the package, "main" for a program.
func (d sourceDir) name() string { return d.files[0].ast.Name.Name }

// internal reports whether the package is for this repository alone.
func (d sourceDir) internal() bool { return slices.Contains(strings.Split(d.path, "/"), "internal") }

// repository parses every directory with Go source.
func repository(t *testing.T) []sourceDir {
	t.Helper()
	byPath := map[string]*sourceDir{}
	nestedIn := []string{}
	set := token.NewFileSet()
	err := filepath.WalkDir(root, func(path string, entry fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		below, err := filepath.Rel(root, path)
		if err != nil {
			return err
		}
		if entry.IsDir() {
			if name := entry.Name(); name == "testdata" || (path != root && strings.HasPrefix(name, ".") && name != "..") {
				return fs.SkipDir
			}
			if _, err := os.Stat(filepath.Join(path, "go.mod")); err == nil && path != root {
				nestedIn = append(nestedIn, filepath.ToSlash(below)+"/")
			}
			return nil
		}
		if !strings.HasSuffix(path, ".go") {
			return nil
		}
		file := sourceFile{name: entry.Name(), set: set}
		source, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		if file.ast, err = parser.ParseFile(set, filepath.ToSlash(below), source, parser.ParseComments|parser.SkipObjectResolution); err != nil {
			return err
		}
		at := filepath.ToSlash(filepath.Dir(below))
		dir := byPath[at]
		if dir == nil {
			dir = &sourceDir{path: at}
			dir.nested = slices.ContainsFunc(nestedIn, func(m string) bool { return strings.HasPrefix(at+"/", m) })
			byPath[at] = dir
		}
		if strings.HasSuffix(file.name, "_test.go") {
			dir.tests = append(dir.tests, file)
		} else {
			dir.files = append(dir.files, file)
		}
		return nil
	})
	require.NoError(t, err)
	dirs := make([]sourceDir, 0, len(byPath))
	for _, dir := range byPath {
		dirs = append(dirs, *dir)
	}
	slices.SortFunc(dirs, func(a, b sourceDir) int { return strings.Compare(a.path, b.path) })
	require.NotEmpty(t, dirs)
	return dirs
}

// parse makes a file of source that a test holds.
func parse(t *testing.T, name, source string) sourceFile {
	t.Helper()
	set := token.NewFileSet()
	parsed, err := parser.ParseFile(set, name, source, parser.ParseComments|parser.SkipObjectResolution)
	require.NoError(t, err)
	return sourceFile{name: name, set: set, ast: parsed}
}
