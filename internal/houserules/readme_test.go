package houserules

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// The code in README.md is that of safestore/readme_test.go, which compiles.
func TestReadmeCodeIsCompiled(t *testing.T) {
	readme, err := os.ReadFile(filepath.Join(root, "README.md"))
	require.NoError(t, err)
	compiled, err := os.ReadFile(filepath.Join(root, "safestore", "readme_test.go"))
	require.NoError(t, err)
	blocks := regexp.MustCompile("(?s)```go\n(.*?)```").FindAllSubmatch(readme, -1)
	require.NotEmpty(t, blocks)
	for _, block := range blocks {
		if !strings.Contains(flat(compiled), flat(block[1])) {
			t.Errorf("in README.md, and not in safestore/readme_test.go:\n%s", block[1])
		}
	}
}

// flat is code without its indentation and empty lines.
func flat(code []byte) string {
	var b strings.Builder
	for line := range strings.Lines(string(code)) {
		if line = strings.TrimSpace(line); line != "" {
			b.WriteString(line + "\n")
		}
	}
	return b.String()
}
