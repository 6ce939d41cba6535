package cluster

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"runtime"
	"strings"
)

// testModule is the module this package is in, pinsDir where the module that
// pins the control plane lies in it.
const (
	testModule = "github.com/kube-safestore/kube-safestore/test"
	pinsDir    = "controlplane"
)

// Assets returns the directory of the kube-apiserver and etcd to run: the one
// named by the environment variable KUBEBUILDER_ASSETS if it is set, else one
// in the user's cache directory, where the versions pinned in test/controlplane
// are built when they are missing. A build takes minutes; progress is told what
// happens and how far it is. Programs that ask at the same time wait for one
// build.
func Assets(ctx context.Context, progress io.Writer) (string, error) {
	if dir := os.Getenv("KUBEBUILDER_ASSETS"); dir != "" {
		if err := complete(dir); err != nil {
			return "", fmt.Errorf("KUBEBUILDER_ASSETS: %w", err)
		}
		return dir, nil
	}
	pinned, err := findPins(ctx)
	if err != nil {
		return "", fmt.Errorf("%w; set KUBEBUILDER_ASSETS to a directory that holds kube-apiserver and etcd, "+
			"or run this inside a checkout of kube-safestore", err)
	}
	cache, err := os.UserCacheDir()
	if err != nil {
		return "", err
	}
	cache = filepath.Join(cache, "kube-safestore", "controlplane")
	dir := filepath.Join(cache, pinned.key())
	if complete(dir) == nil {
		return dir, nil
	}
	if err := os.MkdirAll(cache, 0o755); err != nil {
		return "", err
	}
	unlock, err := lock(ctx, dir+".lock", progress)
	if err != nil {
		return "", err
	}
	defer unlock()
	if complete(dir) == nil { // built by another while we waited
		return dir, nil
	}
	return dir, pinned.build(ctx, dir, progress)
}

// complete reports what is missing for dir to be run from.
func complete(dir string) error {
	for _, name := range []string{"kube-apiserver", "etcd"} {
		switch info, err := os.Stat(filepath.Join(dir, name)); {
		case err != nil:
			return err
		case info.IsDir() || info.Mode()&0o111 == 0:
			return fmt.Errorf("%s is not a program", filepath.Join(dir, name))
		}
	}
	return nil
}

// pins is the tool-only module and the versions it pins.
type pins struct {
	module           string // its directory
	kubernetes, etcd string // versions, such as v1.2.3
}

// key names what is built from the pins on this machine.
func (p pins) key() string {
	return fmt.Sprintf("kube-apiserver-%s-etcd-%s-%s-%s", p.kubernetes, p.etcd, runtime.GOOS, runtime.GOARCH)
}

// findPins reads the pins of this source tree.
func findPins(ctx context.Context) (pins, error) {
	root, err := findTestModule(ctx)
	if err != nil {
		return pins{}, err
	}
	p := pins{module: filepath.Join(root, pinsDir)}
	content, err := os.ReadFile(filepath.Join(p.module, "go.mod"))
	if err != nil {
		return pins{}, err
	}
	for module, version := range map[string]*string{
		"k8s.io/kubernetes":         &p.kubernetes,
		"go.etcd.io/etcd/server/v3": &p.etcd,
	} {
		required := regexp.MustCompile(`(?m)^\s*(?:require )?` + regexp.QuoteMeta(module) + ` (v\S+)`)
		found := required.FindSubmatch(content)
		if found == nil {
			return pins{}, fmt.Errorf("%s/go.mod does not require %s", p.module, module)
		}
		*version = string(found[1])
	}
	return p, nil
}

// findTestModule returns the directory of the source of the test module. A
// program compiled without -trimpath knows where its source was; any other asks
// the module it is run in.
func findTestModule(ctx context.Context) (string, error) {
	if _, file, _, ok := runtime.Caller(0); ok && filepath.IsAbs(file) {
		if root := filepath.Dir(filepath.Dir(file)); hasPins(root) {
			return root, nil
		}
	}
	list := exec.CommandContext(ctx, "go", "list", "-m", "-f", "{{.Dir}}", testModule)
	out, err := list.Output()
	if err != nil {
		if exit, ok := errors.AsType[*exec.ExitError](err); ok {
			err = errors.New(strings.TrimSpace(string(exit.Stderr)))
		}
		return "", fmt.Errorf("find the module %s: %w", testModule, err)
	}
	// As a dependency from a module proxy, the test module comes without the
	// modules nested in it.
	root := strings.TrimSpace(string(out))
	if !hasPins(root) {
		return "", fmt.Errorf("the module %s at %q comes without %s", testModule, root, pinsDir)
	}
	return root, nil
}

func hasPins(root string) bool {
	_, err := os.Stat(filepath.Join(root, pinsDir, "go.mod"))
	return err == nil
}
