package faults

import (
	"context"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/kube-safestore/kube-safestore/test/cluster"
	"github.com/kube-safestore/kube-safestore/test/faults/internal/system"
	"github.com/kube-safestore/kube-safestore/test/faults/internal/truth"
)

// The truth is what a consistent list of the API server says, of built-in objects
// and of custom ones, after many changes of each kind.
func TestTheTruthIsTrue(t *testing.T) {
	for name, prepare := range map[string]func(context.Context, *Stage) error{
		"ConfigMaps": direct,
		"custom":     func(ctx context.Context, s *Stage) error { return s.custom(ctx, stored, nil) },
	} {
		t.Run(name, func(t *testing.T) {
			c, err := runner.shared.start(cluster.Options{})
			require.NoError(t, err)
			s, err := newStage(t.Context(), c)
			require.NoError(t, err)
			t.Cleanup(func() { assert.NoError(t, s.close()) })
			require.NoError(t, prepare(t.Context(), s))
			require.NoError(t, s.tell(t.Context()))
			require.NoError(t, until(t.Context(), "changes", func() bool { return len(s.Truth.Moments()) > 3*7 }))
			defer s.Writer.Pause()()

			list, err := s.Dynamic.Resource(s.Resource).Namespace(s.Namespace).List(t.Context(), metav1.ListOptions{})
			require.NoError(t, err)
			var listed truth.State
			for i := range list.Items {
				listed.Add(&list.Items[i])
			}
			assert.NoError(t, until(t.Context(), "etcd's watch", func() bool { return s.Truth.Now() == listed }), "%v, %v", s.Truth.Now(), listed)
			seen := map[bool]int{}
			for _, m := range s.Truth.Moments() {
				seen[m.State.Blinker != ""]++
			}
			assert.Greater(t, seen[true], 5, "the blinker comes")
			assert.Greater(t, seen[false], 5, "and goes")
		})
	}
}

// A process that ends by itself is found, with what it said last.
func TestAProcessThatDies(t *testing.T) {
	p, err := system.Start(t.Context(), system.Setup{Kind: "unheard of", Interval: time.Second})
	require.NoError(t, err)
	_, err = p.Stop()
	assert.ErrorContains(t, err, `unknown kind of cache: "unheard of"`)
	assert.False(t, p.Alive())
}
