package main

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

const kubeconfig = `apiVersion: v1
kind: Config
current-context: here
contexts: [{name: here, context: {cluster: here, user: me}}]
clusters: [{name: here, cluster: {server: "https://named.example:6443", certificate-authority: ca.crt}}]
users: [{name: me, user: {token: secret}}]
`

func TestOnlyTheNamedClusterIsUsed(t *testing.T) {
	dir := t.TempDir()
	file := func(name, content string) string {
		path := filepath.Join(dir, name)
		require.NoError(t, os.WriteFile(path, []byte(content), 0o600))
		return path
	}
	file("ca.crt", "")
	named := file("named", kubeconfig)
	t.Setenv("KUBECONFIG", named)
	t.Setenv("KUBERNETES_MASTER", "https://other.example")
	t.Setenv("KUBERNETES_SERVICE_HOST", "other.example")
	t.Setenv("KUBERNETES_SERVICE_PORT", "443")

	for _, empty := range []string{file("empty", ""), file("nothing in it", "apiVersion: v1\nkind: Config\n"), filepath.Join(dir, "missing")} {
		_, err := loadKubeconfig(empty)
		assert.Error(t, err, empty)
	}

	t.Setenv("KUBECONFIG", filepath.Join(dir, "missing"))
	config, err := loadKubeconfig(named)
	require.NoError(t, err)
	assert.Equal(t, "https://named.example:6443", config.Host)
	assert.Equal(t, filepath.Join(dir, "ca.crt"), config.CAFile, "relative to the file")
}
