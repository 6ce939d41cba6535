package houserules

import (
	"go/ast"
	"go/token"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
)

// undocumented returns the exported identifiers of a file that no comment
// describes: types, functions, constants and variables, methods of exported
// types, and the fields and methods of exported structs and interfaces. A
// comment describes all that follows it up to the next blank line, or the whole
// parenthesised group that it stands above.
func undocumented(f sourceFile) []string {
	var found []string
	missing := func(node ast.Node, what string) {
		found = append(found, f.at(node)+": "+what+" has no doc comment")
	}
	for _, decl := range f.ast.Decls {
		switch decl := decl.(type) {
		case *ast.FuncDecl:
			name, exported := decl.Name.Name, decl.Name.IsExported()
			if decl.Recv != nil {
				of := receiver(decl.Recv.List[0].Type)
				name, exported = of+"."+name, exported && ast.IsExported(of)
			}
			if exported && decl.Doc == nil {
				missing(decl, name)
			}
		case *ast.GenDecl:
			above := false // the spec before, without blank line between, is described
			end := decl.Pos()
			for _, spec := range decl.Specs {
				names, own := described(spec)
				own = own || decl.Doc != nil || (above && f.adjacent(end, spec.Pos()))
				above, end = own, spec.End()
				for _, name := range names {
					if name.IsExported() && !own {
						missing(name, name.Name)
					}
				}
				if t, ok := spec.(*ast.TypeSpec); ok && t.Name.IsExported() {
					for _, name := range f.undocumentedMembers(t) {
						missing(name, t.Name.Name+"."+name.Name)
					}
				}
			}
		}
	}
	return found
}

// described returns what a spec declares, and whether it has a comment.
func described(spec ast.Spec) (names []*ast.Ident, commented bool) {
	switch spec := spec.(type) {
	case *ast.TypeSpec:
		return []*ast.Ident{spec.Name}, spec.Doc != nil
	case *ast.ValueSpec:
		return spec.Names, spec.Doc != nil || spec.Comment != nil
	}
	return nil, true
}

// undocumentedMembers returns the fields of a struct and the methods of an
// interface that no comment describes. What is embedded is described where it
// is declared.
func (f sourceFile) undocumentedMembers(t *ast.TypeSpec) (found []*ast.Ident) {
	var members *ast.FieldList
	switch t := t.Type.(type) {
	case *ast.StructType:
		members = t.Fields
	case *ast.InterfaceType:
		members = t.Methods
	default:
		return nil
	}
	above, end := false, members.Pos()
	for _, member := range members.List {
		own := member.Doc != nil || member.Comment != nil || (above && f.adjacent(end, member.Pos()))
		above, end = own, member.End()
		for _, name := range member.Names {
			if name.IsExported() && !own {
				found = append(found, name)
			}
		}
	}
	return found
}

// adjacent reports whether no blank line lies between two places.
func (f sourceFile) adjacent(end, next token.Pos) bool {
	return f.set.Position(next).Line-f.set.Position(end).Line <= 1
}

// receiver returns the name of the type that a method belongs to.
func receiver(expr ast.Expr) string {
	switch expr := expr.(type) {
	case *ast.StarExpr:
		return receiver(expr.X)
	case *ast.IndexExpr:
		return receiver(expr.X)
	case *ast.IndexListExpr:
		return receiver(expr.X)
	case *ast.Ident:
		return expr.Name
	}
	return ""
}

func TestUndocumentedFindsWhatHasNoComment(t *testing.T) {
	bad := parse(t, "bad.go", `package bad

type T[K any] struct {
	A int

	// B and C are described together.
	B int
	C int

	D int
	E int // E is described beside it.
	hidden int
	fmtStringer
}

func (*T[K]) M() {}
func (T[K]) n() {}

type hidden struct{ A int }

func (hidden) M() {}

// I is described, its method is not.
type I interface{ M() }

func F() {}

const (
	A = 1
	b = 2
)

// The group is described.
const (
	C = 1

	D = 2
)

var V, w int
`)
	var names []string
	for _, finding := range undocumented(bad) {
		_, what, _ := strings.Cut(finding, ": ")
		names = append(names, strings.TrimSuffix(what, " has no doc comment"))
	}
	slices.Sort(names)
	assert.Equal(t, []string{"A", "F", "I.M", "T", "T.A", "T.D", "T.M", "V"}, names)
}

func TestExportsAreDocumented(t *testing.T) {
	for _, dir := range repository(t) {
		if dir.internal() {
			continue
		}
		for _, file := range dir.files {
			assert.Empty(t, undocumented(file))
		}
	}
}

// packageDocFaults returns what is wrong with the package comment of a
// directory: there is exactly one, in doc.go unless it is a program or internal,
// and in a library it has a section on concurrency.
func packageDocFaults(dir sourceDir) []string {
	var in []string
	text := ""
	for _, file := range dir.files {
		if file.ast.Doc != nil {
			in = append(in, file.name)
			text = file.ast.Doc.Text()
		}
	}
	switch {
	case len(in) != 1:
		return []string{dir.path + ": want one package comment, have them in: " + strings.Join(in, " ")}
	case dir.name() != "main" && !dir.internal() && in[0] != "doc.go":
		return []string{dir.path + ": the package comment belongs into doc.go, not " + in[0]}
	case slices.Contains(libraries, dir.path) && !strings.Contains(text, "\n# Concurrency\n"):
		return []string{dir.path + `: the package comment has no heading "# Concurrency"`}
	}
	return nil
}

func TestPackageDocFaultsAreFound(t *testing.T) {
	described := "// Package p is described.\n//\n// # Concurrency\n//\n// Yes.\npackage p"
	for name, test := range map[string]struct {
		dir  sourceDir
		want string
	}{
		"none":           {sourceDir{path: "p", files: []sourceFile{parse(t, "doc.go", "package p")}}, "want one"},
		"two":            {sourceDir{path: "p", files: []sourceFile{parse(t, "doc.go", described), parse(t, "p.go", described)}}, "doc.go p.go"},
		"wrong file":     {sourceDir{path: "p", files: []sourceFile{parse(t, "p.go", described)}}, "belongs into doc.go"},
		"no concurrency": {sourceDir{path: "token", files: []sourceFile{parse(t, "doc.go", "// Package p.\npackage p")}}, "# Concurrency"},
		"good":           {sourceDir{path: "token", files: []sourceFile{parse(t, "doc.go", described)}}, ""},
		"internal":       {sourceDir{path: "p/internal/q", files: []sourceFile{parse(t, "q.go", described)}}, ""},
		"program":        {sourceDir{path: "p", files: []sourceFile{parse(t, "main.go", "// P runs.\npackage main")}}, ""},
	} {
		t.Run(name, func(t *testing.T) {
			faults := strings.Join(packageDocFaults(test.dir), "\n")
			assert.Contains(t, faults, test.want)
			assert.Equal(t, test.want == "", faults == "", faults)
		})
	}
}

func TestEachPackageHasOneDoc(t *testing.T) {
	for _, dir := range repository(t) {
		if len(dir.files) > 0 {
			assert.Empty(t, packageDocFaults(dir))
		}
	}
}
