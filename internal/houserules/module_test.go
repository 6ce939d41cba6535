package houserules

import (
	"encoding/json"
	"os/exec"
	"slices"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// Whoever imports SafeStore gets the requirements of the root module. What is
// heavier belongs into a nested module.
var (
	required = []string{
		"github.com/cenkalti/backoff/v4",
		"github.com/stretchr/testify", // tests
		"go.uber.org/goleak",          // tests
		"k8s.io/apimachinery",
		"k8s.io/client-go",
	}
	// tolerated may be required as well: client-go brings it anyhow.
	tolerated = []string{
		"github.com/go-logr/logr",
		"golang.org/x/net", // tests
		"k8s.io/api",
		"k8s.io/klog/v2",
		"k8s.io/utils",
	}
)

// goMod is what `go mod edit -json` prints, as far as the rules need it.
type goMod struct {
	Module  struct{ Path string }
	Go      string
	Replace []struct{ Old struct{ Path string } }
	Tool    []struct{ Path string }
	Require []struct {
		Path     string
		Indirect bool
	}
}

// moduleFaults returns what is wrong with the root's go.mod.
func moduleFaults(m goMod) []string {
	var found []string
	for _, replaced := range m.Replace {
		found = append(found, "replaces "+replaced.Old.Path+", which has no effect on those who import us")
	}
	for _, tool := range m.Tool {
		found = append(found, "tool "+tool.Path+" belongs into the tools module")
	}
	var direct []string
	for _, r := range m.Require {
		if r.Indirect {
			continue
		}
		direct = append(direct, r.Path)
		if !slices.Contains(required, r.Path) && !slices.Contains(tolerated, r.Path) {
			found = append(found, "requires "+r.Path)
		}
	}
	for _, path := range required {
		if !slices.Contains(direct, path) {
			found = append(found, "does not require "+path)
		}
	}
	return found
}

func TestModuleFaultsAreFound(t *testing.T) {
	var bad goMod
	require.NoError(t, json.Unmarshal([]byte(`{
		"Replace": [{"Old": {"Path": "k8s.io/api"}}],
		"Tool": [{"Path": "example.com/tool"}],
		"Require": [
			{"Path": "github.com/cenkalti/backoff/v4"}, {"Path": "github.com/stretchr/testify"}, {"Path": "go.uber.org/goleak"},
			{"Path": "k8s.io/apimachinery"}, {"Path": "k8s.io/client-go", "Indirect": true},
			{"Path": "k8s.io/klog/v2"}, {"Path": "sigs.k8s.io/controller-runtime"}, {"Path": "example.com/x", "Indirect": true}
		]}`), &bad))
	assert.Equal(t, []string{
		"replaces k8s.io/api, which has no effect on those who import us",
		"tool example.com/tool belongs into the tools module",
		"requires sigs.k8s.io/controller-runtime",
		"does not require k8s.io/client-go",
	}, moduleFaults(bad))
}

func TestRootModuleIsLight(t *testing.T) {
	cmd := exec.CommandContext(t.Context(), "go", "mod", "edit", "-json")
	cmd.Dir = root
	out, err := cmd.Output()
	require.NoError(t, err)
	var m goMod
	require.NoError(t, json.Unmarshal(out, &m))
	assert.Equal(t, module, m.Module.Path)
	assert.Equal(t, "1.26.0", m.Go)
	assert.Empty(t, moduleFaults(m))
}
