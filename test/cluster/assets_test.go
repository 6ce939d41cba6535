package cluster

import (
	"bytes"
	"context"
	"errors"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func TestAssetsNamesTheDirectoryItWasGiven(t *testing.T) {
	dir := t.TempDir()
	t.Setenv("KUBEBUILDER_ASSETS", dir)
	_, err := Assets(t.Context(), t.Output())
	require.ErrorContains(t, err, "KUBEBUILDER_ASSETS")
	require.ErrorContains(t, err, "kube-apiserver")

	for _, name := range []string{"kube-apiserver", "etcd"} {
		require.NoError(t, os.WriteFile(filepath.Join(dir, name), nil, 0o644))
	}
	_, err = Assets(t.Context(), t.Output())
	require.ErrorContains(t, err, "not a program")

	for _, name := range []string{"kube-apiserver", "etcd"} {
		require.NoError(t, os.Chmod(filepath.Join(dir, name), 0o755))
	}
	got, err := Assets(t.Context(), t.Output())
	require.NoError(t, err)
	assert.Equal(t, dir, got)
}

func TestThePinsAreFoundInThisTree(t *testing.T) {
	p, err := findPins(t.Context())
	require.NoError(t, err)
	assert.FileExists(t, filepath.Join(p.module, "go.mod"))
	assert.Regexp(t, `^v1\.\d+\.\d+$`, p.kubernetes)
	assert.Regexp(t, `^v3\.\d+\.\d+$`, p.etcd)
	assert.Contains(t, p.key(), p.kubernetes)
}

func TestTheLockIsHeldByOne(t *testing.T) {
	path := filepath.Join(t.TempDir(), "lock")
	unlock, err := lock(t.Context(), path, t.Output())
	require.NoError(t, err)

	var said bytes.Buffer
	stop := errors.New("stop waiting")
	ctx, cancel := context.WithCancelCause(t.Context())
	time.AfterFunc(300*time.Millisecond, func() { cancel(stop) })
	_, err = lock(ctx, path, &said)
	require.ErrorIs(t, err, stop)
	assert.Contains(t, said.String(), "waiting for another program")

	unlock()
	unlock, err = lock(t.Context(), path, t.Output())
	require.NoError(t, err)
	unlock()
}

func TestTailKeepsTheLastLines(t *testing.T) {
	var next bytes.Buffer
	l := &tail{next: &next}
	for range tailLines {
		_, err := l.Write([]byte("early\n"))
		require.NoError(t, err)
	}
	for range tailLines {
		_, err := l.Write([]byte("la"))
		require.NoError(t, err)
		_, err = l.Write([]byte("te\n"))
		require.NoError(t, err)
	}
	assert.NotContains(t, l.String(), "early")
	assert.Contains(t, l.String(), "late")
	assert.Contains(t, next.String(), "early")
}
