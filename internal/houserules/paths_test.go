package houserules

import (
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// machinePath matches an absolute path in a place where people keep their
// checkouts: it is wrong on every other machine.
var machinePath = regexp.MustCompile(`(^|[\s"'` + "`" + `=:(<>])/(root|home|Users|work)/`)

func TestMachinePathMatches(t *testing.T) {
	for text, want := range map[string]bool{
		"see /" + "work/x":                true,
		`"/` + `root/.cache"`:             true,
		"DIR=/" + "home/me/src":           true,
		"/" + "Users/me":                  true,
		"test/work/x":                     false,
		"https://example.com/root/x":      false,
		"/registry/configmaps/default/ok": false,
	} {
		assert.Equal(t, want, machinePath.MatchString(text), text)
	}
}

func TestNoFileNamesAPathOfOneMachine(t *testing.T) {
	list := exec.CommandContext(t.Context(), "git", "ls-files", "-z", "--cached", "--others", "--exclude-standard")
	list.Dir = root
	out, err := list.Output()
	if err != nil {
		t.Skipf("not a git checkout: %v", err)
	}
	for name := range strings.SplitSeq(strings.TrimRight(string(out), "\x00"), "\x00") {
		content, err := os.ReadFile(filepath.Join(root, name))
		if os.IsNotExist(err) {
			continue // deleted, not committed yet
		}
		require.NoError(t, err)
		number := 0
		for line := range strings.Lines(string(content)) {
			number++
			assert.False(t, machinePath.MatchString(line), "%s:%d: %s", name, number, line)
		}
	}
}
