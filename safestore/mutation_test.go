package safestore

import (
	"os"
	"os/exec"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// mutateSecret changes a secret that a running store has handed out, and stops
// the store.
func mutateSecret(t *testing.T, opts ...Option[*corev1.Secret]) {
	list := &corev1.SecretList{ListMeta: metav1.ListMeta{ResourceVersion: "1"}, Items: []corev1.Secret{{
		ObjectMeta: metav1.ObjectMeta{Namespace: "A", Name: "a", ResourceVersion: "1"},
		Data:       map[string][]byte{"password": []byte("hunter2"), "user": []byte("root")},
		StringData: map[string]string{"note": "swordfish"},
	}}}
	s, err := New(sourceOf(list), Options{Name: "secrets"}, opts...)
	require.NoError(t, err)
	stop := start(t, s)
	secret, err := s.Get(t.Context(), key("A", "a"))
	require.NoError(t, err)
	secret.Data["password"][0] = 'H'
	secret.Data["other"] = []byte("s3cr3t")
	secret.StringData = map[string]string{"note": "xyzzy"}
	stop(nil)
}

const (
	secretMutation = `safestore: secrets: v1.Secret A/a was changed in place: ` +
		`data["other"], data["password"], stringData["note"]; all readers share it: change a DeepCopy`

	inChild = "SAFESTORE_TEST_CHILD"
)

var secretValues = []string{"hunter2", "Hunter2", "root", "swordfish", "xyzzy", "s3cr3t"}

// C51: the report names type, key and fields, and shows nothing of what is in them.
func TestC51MutationErrorShowsNoValues(t *testing.T) {
	var found []*MutationError
	mutateSecret(t, WithMutationDetector[*corev1.Secret](func(e *MutationError) { found = append(found, e) }))
	require.Len(t, found, 1)
	assert.EqualError(t, found[0], secretMutation)
	assert.Equal(t, &MutationError{
		Store: "secrets", Type: "v1.Secret", Key: key("A", "a"),
		Fields: []string{`data["other"]`, `data["password"]`, `stringData["note"]`},
	}, found[0])

	found[0].More = 3
	assert.ErrorContains(t, found[0], `stringData["note"] and 3 more; all`)
}

// C51: with the environment variable a mutation is the end of the process.
func TestC51MutationEndsTheProcess(t *testing.T) {
	if os.Getenv(inChild) != "" {
		mutateSecret(t)
		return
	}
	program, err := os.Executable()
	require.NoError(t, err)
	run := func(value string) (string, error) {
		cmd := exec.CommandContext(t.Context(), program, "-test.run=^"+t.Name()+"$", "-test.v")
		cmd.Env = append(os.Environ(), inChild+"=1", mutationVariable+"="+value)
		out, err := cmd.CombinedOutput()
		return string(out), err
	}
	out, err := run("false")
	require.NoError(t, err, out)
	assert.Contains(t, out, "--- PASS: "+t.Name())

	out, err = run("true")
	var exit *exec.ExitError
	require.ErrorAs(t, err, &exit, out)
	assert.Equal(t, 2, exit.ExitCode(), "as of a panic")
	assert.Contains(t, out, "panic: ")
	assert.Contains(t, out, secretMutation)
	for _, value := range secretValues {
		assert.NotContains(t, out, value)
	}
}

func TestMutationVariable(t *testing.T) {
	for value, on := range map[string]bool{"": false, "0": false, "false": false, "1": true, "true": true} {
		t.Setenv(mutationVariable, value)
		s, err := New[*Map](newScripted(), Options{})
		require.NoError(t, err)
		assert.Equal(t, on, s.mutations != nil, value)
	}
	t.Setenv(mutationVariable, "yes")
	_, err := New[*Map](newScripted(), Options{})
	assert.EqualError(t, err, `safestore: environment variable SAFESTORE_MUTATION_DETECTOR is "yes": want true or false`)
}

// The option says what to do about a mutation, whatever the environment says.
func TestMutationOptionCountsMore(t *testing.T) {
	t.Setenv(mutationVariable, "true")
	reports := 0
	mutateSecret(t, WithMutationDetector[*corev1.Secret](func(*MutationError) { reports++ }))
	assert.Equal(t, 1, reports)
}

// Without a report a mutation panics, as an error.
func TestMutationPanics(t *testing.T) {
	r := newRig(t)
	r.mutations = newMutationDetector[*Map]("maps", nil)
	a := mapOf("A", "a", "1")
	r.publishSet(t, "1", a)
	a.Labels = map[string]string{"a": ""}
	assert.PanicsWithError(t, `safestore: maps: v1.ConfigMap A/a was changed in place: metadata.labels["a"]; `+
		`all readers share it: change a DeepCopy`, r.mutations.look)
}
