package houserules

import (
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
)

// mayImport says what the packages that users' programs contain may import
// beyond the standard library, and with it what lies below that path. What is
// internal to a package may import what the package may, and so may the package
// import it.
var mayImport = map[string][]string{
	"token":             {},
	"internal/trie":     {},
	"internal/versions": {"k8s.io/apimachinery"},
	"invalidation":      {module + "/token", "k8s.io/apimachinery"},
	"watcher": append([]string{
		module + "/token", module + "/invalidation", module + "/internal/versions",
	}, clientLibraries...),
	"safestore": append([]string{
		module + "/token", module + "/invalidation", module + "/watcher", module + "/internal/versions", module + "/internal/trie",
	}, clientLibraries...),
	"safestore/clientgo":   append([]string{module + "/token", module + "/safestore"}, clientLibraries...),
	"safestore/controller": append([]string{module + "/token", module + "/safestore"}, clientLibraries...),
	"safestore/health": {
		module + "/token", module + "/invalidation", module + "/watcher", module + "/safestore", "k8s.io/apimachinery",
	},
	"safestore/debug": {module + "/token", module + "/invalidation", module + "/watcher", module + "/safestore"},
}

// clientLibraries are client-go, what it brings anyhow, and backoff.
var clientLibraries = []string{
	"k8s.io/apimachinery", "k8s.io/client-go", "k8s.io/utils", "k8s.io/klog/v2", "github.com/go-logr/logr",
	"github.com/cenkalti/backoff/v4",
}

// forTests are packages of the root module that only tests import, and so may
// import what they need.
var forTests = []string{"internal/houserules", "internal/wiretest"}

// neverImported is what no library code may import: it would come into every
// user's program. Generated clients alone are some hundred packages.
var neverImported = []string{
	"testing",
	"github.com/stretchr/testify",
	"go.uber.org/goleak",
	"k8s.io/client-go/testing",
	"k8s.io/client-go/kubernetes",
	"k8s.io/client-go/informers",
	"k8s.io/client-go/dynamic/fake",
	"k8s.io/client-go/metadata/fake",
	"k8s.io/client-go/tools/cache/testing",
}

// below reports whether path is the package or module that is named, or lies
// below it.
func below(path, named string) bool { return path == named || strings.HasPrefix(path, named+"/") }

// forbiddenImports returns the imports of a file in the package at path that
// the rules do not allow.
func forbiddenImports(path string, f sourceFile) []string {
	if slices.Contains(forTests, path) {
		return nil
	}
	owner, _, _ := strings.Cut(path, "/internal/")
	allowed, known := mayImport[owner]
	if !known {
		return []string{path + ": not in mayImport: say there what it may import"}
	}
	var found []string
	for _, spec := range f.ast.Imports {
		imported, err := strconv.Unquote(spec.Path.Value)
		if err != nil {
			continue
		}
		named := func(name string) bool { return below(imported, name) }
		first, _, _ := strings.Cut(imported, "/")
		standard := !strings.Contains(first, ".")
		internal := named(module + "/" + owner + "/internal")
		// Of a package that lies below another the compiler would let it import
		// what is internal to that one.
		permitted := slices.ContainsFunc(allowed, func(name string) bool {
			return named(name) && !strings.Contains(strings.TrimPrefix(imported, name), "/internal/")
		})
		if slices.ContainsFunc(neverImported, named) || !(standard || internal || permitted) {
			found = append(found, f.at(spec)+": "+path+" may not import "+imported)
		}
	}
	return found
}

func TestForbiddenImportsAreFound(t *testing.T) {
	for _, test := range []struct {
		path, imported string
		forbidden      bool
	}{
		{"token", "context", false},
		{"token", "testing", true},
		{"token", "testing/synctest", true},
		{"token", "github.com/go-logr/logr", true},
		{"token", module + "/invalidation", true},
		{"invalidation", module + "/token", false},
		{"invalidation", module + "/watcher", true},
		{"invalidation", "k8s.io/apimachinery/pkg/api/errors", false},
		{"invalidation", "k8s.io/apimachinery-more", true},
		{"invalidation", "k8s.io/client-go/tools/cache", true},
		{"watcher", "k8s.io/client-go/tools/cache", false},
		{"watcher", "k8s.io/client-go/kubernetes", true},
		{"watcher", "k8s.io/client-go/kubernetes/fake", true},
		{"watcher", "k8s.io/api/core/v1", true},
		{"watcher", module + "/safestore", true},
		{"safestore", module + "/safestore/internal/x", false},
		{"safestore", module + "/watcher", false},
		{"safestore/internal/x", module + "/token", false},
		{"safestore/internal/x", module + "/watcher/internal/y", true},
		{"safestore/internal/x", "github.com/stretchr/testify/assert", true},
		{"safestore/clientgo", module + "/safestore", false},
		{"safestore/clientgo", module + "/safestore/internal/x", true},
		{"safestore/clientgo", module + "/watcher", true},
		{"watcher", module + "/internal/versions", false},
		{"watcher", module + "/internal/wiretest", true},
		{"internal/versions", "k8s.io/client-go/rest", true},
		{"internal/wiretest", "testing", false},
		{"new", "context", true},
	} {
		file := parse(t, "f.go", "package p\nimport "+strconv.Quote(test.imported))
		assert.Equal(t, test.forbidden, len(forbiddenImports(test.path, file)) > 0, "%s imports %s", test.path, test.imported)
	}
}

func TestImportsPointOneWay(t *testing.T) {
	for _, dir := range repository(t) {
		if dir.nested {
			continue
		}
		for _, file := range dir.files {
			assert.Empty(t, forbiddenImports(dir.path, file))
		}
	}
}

func TestEachLibraryExists(t *testing.T) {
	for _, library := range libraries {
		assert.True(t, slices.ContainsFunc(repository(t), func(d sourceDir) bool {
			return d.path == library && len(d.files) > 0
		}), library)
	}
}
