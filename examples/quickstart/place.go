package main

import (
	"context"
	"errors"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	applycorev1 "k8s.io/client-go/applyconfigurations/core/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"

	"github.com/kube-safestore/kube-safestore/test/cluster"
)

// reader is the user that the store runs as.
const reader = "quickstart-reader"

// place is where the demo runs: a namespace, and two users' access to it.
type place struct {
	cluster   *cluster.Cluster     // nil if it is not ours
	admin     kubernetes.Interface // writes, grants and withdraws
	reader    kubernetes.Interface // reads
	other     kubernetes.Interface // reads as well: the same user, for the informer
	proxy     *proxy               // between readers and the server
	namespace string
	noRights  error // why no right can be withdrawn; the reader is then the admin
}

// startCluster makes the place on a control plane of its own.
func (d *demo) startCluster(ctx context.Context) (err error) {
	if d.cluster, err = cluster.Start(ctx, cluster.Options{Assets: d.assets, Output: d.serverLogs}); err != nil {
		return err
	}
	user, err := d.cluster.AddUser(reader)
	if err != nil {
		return err
	}
	if err := d.open(ctx, d.cluster.Config(), user); err != nil {
		return err
	}
	return d.noRights
}

// joinCluster makes the place on the cluster that was named.
func (d *demo) joinCluster(ctx context.Context) error {
	config, err := loadKubeconfig(d.kubeconfig)
	if err != nil {
		return err
	}
	user := rest.CopyConfig(config)
	user.Impersonate = rest.ImpersonationConfig{UserName: reader}
	return d.open(ctx, config, user)
}

// loadKubeconfig returns the access in that file. The usual ways to load one
// turn to KUBECONFIG or to the pod's own cluster if it holds none.
func loadKubeconfig(file string) (*rest.Config, error) {
	config, err := clientcmd.LoadFromFile(file)
	if err != nil {
		return nil, err
	}
	if err := clientcmd.ResolveLocalPaths(config); err != nil {
		return nil, err
	}
	return clientcmd.NewDefaultClientConfig(*config, &clientcmd.ConfigOverrides{}).ClientConfig()
}

// open connects, makes the namespace with an object in it, and lets the reader
// read.
func (d *demo) open(ctx context.Context, admin, user *rest.Config) (err error) {
	if d.admin, err = kubernetes.NewForConfig(admin); err != nil {
		return err
	}
	if err := d.readThroughProxy(user); err != nil {
		return err
	}
	version, err := d.admin.Discovery().ServerVersion()
	if err != nil {
		return err
	}
	namespace := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{GenerateName: "quickstart-"}}
	if namespace, err = d.admin.CoreV1().Namespaces().Create(ctx, namespace, metav1.CreateOptions{}); err != nil {
		return err
	}
	d.namespace = namespace.Name
	d.say("Kubernetes %s at %s, namespace %s.", version.GitVersion, admin.Host, d.namespace)
	if d.noRights = d.prepareRights(ctx); d.noRights != nil {
		if err := errors.Join(d.proxy.stop(), d.readThroughProxy(admin)); err != nil {
			return err
		}
	}
	_, err = d.write(ctx, d.key("settings"), "v1")
	return err
}

// The readers, as the proxy knows them.
const (
	storeReader    = "quickstart-store"
	informerReader = "quickstart-informer"
)

// readThroughProxy puts the proxy before the user's access.
func (p *place) readThroughProxy(user *rest.Config) (err error) {
	if p.proxy, err = startProxy(user); err != nil {
		return err
	}
	if p.reader, err = kubernetes.NewForConfig(p.proxy.config(storeReader)); err != nil {
		return err
	}
	p.other, err = kubernetes.NewForConfig(p.proxy.config(informerReader))
	return err
}

// prepareRights grants the reader the right to read, and makes sure that it is
// this which lets it.
func (p *place) prepareRights(ctx context.Context) error {
	read := func() error {
		_, err := p.reader.CoreV1().ConfigMaps(p.namespace).List(ctx, metav1.ListOptions{Limit: 1})
		return err
	}
	switch err := read(); {
	case err == nil:
		return fmt.Errorf("user %q may read here without a right of its own", reader)
	case !apierrors.IsForbidden(err):
		return err
	}
	role := &rbacv1.Role{
		ObjectMeta: metav1.ObjectMeta{Name: reader},
		Rules:      []rbacv1.PolicyRule{{APIGroups: []string{""}, Resources: []string{"configmaps"}, Verbs: []string{"list", "watch"}}},
	}
	if _, err := p.admin.RbacV1().Roles(p.namespace).Create(ctx, role, metav1.CreateOptions{}); err != nil {
		return err
	}
	if err := p.grant(ctx); err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(ctx, 10*time.Second) // for the server to hear of it
	defer cancel()
	var refused error
	if err := until(ctx, "the right to count", func() bool { refused = read(); return refused == nil }); err != nil {
		return refused
	}
	return nil
}

func (p *place) grant(ctx context.Context) error {
	binding := &rbacv1.RoleBinding{
		ObjectMeta: metav1.ObjectMeta{Name: reader},
		Subjects:   []rbacv1.Subject{{APIGroup: rbacv1.GroupName, Kind: rbacv1.UserKind, Name: reader}},
		RoleRef:    rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "Role", Name: reader},
	}
	_, err := p.admin.RbacV1().RoleBindings(p.namespace).Create(ctx, binding, metav1.CreateOptions{})
	return err
}

func (p *place) withdraw(ctx context.Context) error {
	return p.admin.RbacV1().RoleBindings(p.namespace).Delete(ctx, reader, metav1.DeleteOptions{})
}

// write gives a ConfigMap a value, and makes it if there is none.
func (p *place) write(ctx context.Context, key types.NamespacedName, value string) (*corev1.ConfigMap, error) {
	object := applycorev1.ConfigMap(key.Name, key.Namespace).WithData(map[string]string{"value": value})
	return p.admin.CoreV1().ConfigMaps(key.Namespace).Apply(ctx, object, metav1.ApplyOptions{FieldManager: "quickstart", Force: true})
}

func (p *place) key(name string) types.NamespacedName {
	return types.NamespacedName{Namespace: p.namespace, Name: name}
}

func (p *place) keys(names []string) (keys []types.NamespacedName) {
	for _, name := range names {
		keys = append(keys, p.key(name))
	}
	return keys
}

// remove removes the place: the control plane if it is ours, else the namespace.
func (p *place) remove() error {
	if p.proxy != nil {
		if err := p.proxy.stop(); err != nil {
			return err
		}
	}
	if p.cluster != nil {
		return p.cluster.Stop()
	}
	if p.namespace == "" {
		return nil
	}
	ctx, cancel := context.WithTimeout(context.Background(), 30*time.Second)
	defer cancel()
	if err := p.admin.CoreV1().Namespaces().Delete(ctx, p.namespace, metav1.DeleteOptions{}); err != nil {
		return fmt.Errorf("namespace %s is left behind: %w", p.namespace, err)
	}
	return nil
}
