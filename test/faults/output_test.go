package faults

import (
	"bytes"
	"encoding/json"
	"encoding/xml"
	"errors"
	"io"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/kube-safestore/kube-safestore/test/faults/internal/system"
)

// FAULTS.md is of a run of these faults. Its numbers are those of that run.
func TestFaultsAreWrittenDown(t *testing.T) {
	written, err := os.ReadFile("../FAULTS.md")
	require.NoError(t, err)
	sections := 0
	for _, f := range All() {
		assert.Contains(t, string(written), "\n"+f.section(), "run make faults")
		assert.Contains(t, string(written), "| ["+f.Name+"](#"+f.Name+") |", "run make faults")
		sections++
	}
	assert.Equal(t, sections, strings.Count(string(written), "\n*Right:*"), "run make faults")
}

func TestFaultsHaveNamesAndSayWhatIsRight(t *testing.T) {
	names := map[string]bool{}
	for _, f := range All() {
		assert.Regexp(t, "^[a-z0-9-]+$", f.Name)
		assert.False(t, names[f.Name], f.Name)
		names[f.Name] = true
		assert.NotEmpty(t, f.Injects, f.Name)
		assert.NotEmpty(t, f.Right, f.Name)
		assert.NotNil(t, f.Inject, f.Name)
		assert.False(t, f.Expect.Told && f.Expect.Steady, f.Name)
		assert.False(t, f.Expect.Told && len(f.Expect.Reasons) == 0, f.Name)
	}
}

// ran is a result with one verdict that passes and one that is wrong.
func ran() Result {
	f := Fault{Name: "a-fault", Injects: "Something.", Right: "Something else."}
	return Result{
		Fault: f, Start: after(0), Begun: after(3), Over: after(6), Bound: time.Second, Truth: counting(0, 9),
		Verdicts: []Verdict{
			{Fault: f.Name, System: system.SafeStore, Told: true, Recovered: true, Reasons: []string{"Stale"}},
			{Fault: f.Name, System: system.Informer, Wrong: 7, WrongFor: time.Second},
		},
		Samples: map[system.Kind][]system.Sample{
			system.SafeStore: {good(1.5, 1), good(3.5, 3), refused(4.5, "Stale"), good(7.5, 7), good(8.5, 8)},
			system.Informer:  {good(1.5, 1), good(4.5, 3), good(6.5, 3), good(8.5, 3)},
		},
	}
}

func TestJSONIsALineForEachCell(t *testing.T) {
	var out bytes.Buffer
	require.NoError(t, WriteJSON(&out, []Result{ran(), {Fault: Fault{Name: "another"}, Err: errors.New("no cluster")}}))
	lines := strings.Split(strings.TrimSpace(out.String()), "\n")
	require.Len(t, lines, 3)
	var cell map[string]any
	require.NoError(t, json.Unmarshal([]byte(lines[1]), &cell))
	assert.Equal(t, "a-fault", cell["fault"])
	assert.Equal(t, "client-go", cell["system"])
	assert.Equal(t, "wrong", cell["verdict"])
	assert.EqualValues(t, 7, cell["wrong"])
	assert.EqualValues(t, time.Second, cell["wrongFor"])
	assert.JSONEq(t, `{"fault": "another", "notRun": "no cluster"}`, lines[2])
}

func TestTheTableSaysWhySafeStoreFails(t *testing.T) {
	r := ran()
	assert.True(t, r.Passed())
	r.Verdicts[0].Failures = []string{"it lied"}
	assert.False(t, r.Passed())
	var out bytes.Buffer
	require.NoError(t, WriteTable(&out, []Result{r}))
	assert.Contains(t, out.String(), "FAILED")
	assert.Contains(t, out.String(), "a-fault, SafeStore: it lied")
}

// A picture is well-formed, and has what it is to show: both caches, the reason
// of the second generation, and something in the colour of wrong answers.
func TestAPicture(t *testing.T) {
	var out bytes.Buffer
	require.NoError(t, ran().Picture(&out))
	for decoder := xml.NewDecoder(bytes.NewReader(out.Bytes())); ; {
		_, err := decoder.Token()
		if errors.Is(err, io.EOF) {
			break
		}
		require.NoError(t, err)
	}
	for _, part := range []string{"a-fault", "SafeStore", "client-go", "truth", "#D22828"} {
		assert.Contains(t, out.String(), part)
	}
}
