package wiretest

import (
	"cmp"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/watch"
)

// Kind is a resource and the kind of its objects.
type Kind struct {
	schema.GroupVersionResource
	Kind string
}

// ConfigMaps are the core ones.
var ConfigMaps = Kind{schema.GroupVersionResource{Version: "v1", Resource: "configmaps"}, "ConfigMap"}

// truth is what the server knows: the objects of all resources, and how they
// came to be. It is guarded by Server.mu.
type truth struct {
	version   int64 // of everything, as in etcd
	compacted int64 // versions before it are gone
	objects   map[objectKey]object
	history   []change
	uids      int
	style     VersionStyle
}

type objectKey struct {
	resource schema.GroupVersionResource
	types.NamespacedName
}

type object struct {
	version int64
	uid     string
	raw     json.RawMessage
}

// change is one entry of the history.
type change struct {
	objectKey
	version int64
	event   watch.EventType
	raw     json.RawMessage
}

// VersionStyle is how resource versions look. Kubernetes says that they are
// opaque, then that they are numbers; not every server has heard of it.
type VersionStyle int

const (
	Numbers VersionStyle = iota // as kube-apiserver
	Opaque                      // strings that can be told apart, not compared
	Absent                      // none at all
)

func (t *truth) format(version int64) string {
	switch t.style {
	case Opaque:
		return fmt.Sprintf("etag-%d", version)
	case Absent:
		return ""
	default:
		return strconv.FormatInt(version, 10)
	}
}

func (t *truth) parse(version string) (int64, error) {
	return strconv.ParseInt(strings.TrimPrefix(version, "etag-"), 10, 64)
}

// Collection is one resource of a [Server], for the test to change.
type Collection struct {
	server *Server
	kind   Kind
}

// Set creates the object, or updates it if there is one of its name. It gets a
// version, and a UID if it is new. What is set may be wrong in ways that clients
// cannot decode, if it is given as [unstructured.Unstructured]. Set returns the
// version.
func (c *Collection) Set(obj runtime.Object) int64 {
	content, err := runtime.DefaultUnstructuredConverter.ToUnstructured(obj)
	if err != nil {
		panic(err)
	}
	u := &unstructured.Unstructured{Object: runtime.DeepCopyJSON(content)}
	u.SetAPIVersion(c.kind.GroupVersion().String())
	u.SetKind(c.kind.Kind)
	var version int64
	c.server.update(func() {
		t := &c.server.truth
		k := objectKey{c.kind.GroupVersionResource, types.NamespacedName{Namespace: u.GetNamespace(), Name: u.GetName()}}
		t.version++
		version = t.version
		event := watch.Modified
		o, exists := t.objects[k]
		if !exists {
			event = watch.Added
			t.uids++
			o.uid = fmt.Sprintf("uid-%d", t.uids)
		}
		u.SetUID(types.UID(o.uid))
		u.SetResourceVersion(t.format(t.version))
		o.version, o.raw = t.version, marshal(u.Object)
		t.objects[k] = o
		t.history = append(t.history, change{k, t.version, event, o.raw})
	})
	return version
}

// Delete deletes an object, which must exist, and returns the version of that.
func (c *Collection) Delete(namespace, name string) int64 {
	var version int64
	c.server.update(func() {
		version = c.server.truth.delete(objectKey{c.kind.GroupVersionResource, types.NamespacedName{Namespace: namespace, Name: name}})
	})
	return version
}

func (t *truth) delete(k objectKey) int64 {
	o, exists := t.objects[k]
	if !exists {
		panic(fmt.Sprintf("wiretest: %s does not exist", k))
	}
	t.version++
	delete(t.objects, k)
	var last unstructured.Unstructured
	if err := json.Unmarshal(o.raw, &last.Object); err != nil {
		panic(err)
	}
	last.SetResourceVersion(t.format(t.version))
	t.history = append(t.history, change{k, t.version, watch.Deleted, marshal(last.Object)})
	return t.version
}

// Len returns the number of objects.
func (c *Collection) Len() int { return len(c.Objects()) }

// Objects returns all objects as JSON: what a cache must come to hold.
func (c *Collection) Objects() map[types.NamespacedName]json.RawMessage {
	c.server.mu.Lock()
	defer c.server.mu.Unlock()
	all := map[types.NamespacedName]json.RawMessage{}
	for _, item := range c.server.truth.list(c.kind.GroupVersionResource, "") {
		all[item.NamespacedName] = item.raw
	}
	return all
}

type listed struct {
	objectKey
	object
}

// list returns the objects of a resource, in the order of their keys.
func (t *truth) list(resource schema.GroupVersionResource, namespace string) []listed {
	var items []listed
	for k, o := range t.objects {
		if k.resource == resource && (namespace == "" || k.Namespace == namespace) {
			items = append(items, listed{k, o})
		}
	}
	slices.SortFunc(items, func(a, b listed) int {
		return cmp.Or(cmp.Compare(a.Namespace, b.Namespace), cmp.Compare(a.Name, b.Name))
	})
	return items
}

// at returns the truth as it was at a version.
func (t *truth) at(version int64) *truth {
	if version >= t.version {
		return t
	}
	old := &truth{version: version, style: t.style, objects: map[objectKey]object{}}
	for _, c := range t.history {
		switch {
		case c.version > version:
			return old
		case c.event == watch.Deleted:
			delete(old.objects, c.objectKey)
		default:
			old.objects[c.objectKey] = object{version: c.version, raw: c.raw}
		}
	}
	return old
}

// Version returns the server's current resource version.
func (s *Server) Version() int64 {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.truth.version
}

// Skip moves the server's version forward by n, as changes to other resources
// do.
func (s *Server) Skip(n int64) { s.update(func() { s.truth.version += n }) }

// Compact makes the server forget all versions before the current one, as etcd
// does every five minutes: to watch from one of them, or to go on with a list, is
// answered with 410.
func (s *Server) Compact() { s.update(func() { s.truth.compacted = s.truth.version }) }

// Backup keeps what the server knows, and returns a function that restores it:
// the server's version goes back, and what was changed meanwhile is lost. Open
// connections are cut, as with any restore.
func (s *Server) Backup() (restore func()) {
	s.mu.Lock()
	defer s.mu.Unlock()
	saved := s.truth
	saved.objects = maps.Clone(saved.objects)
	saved.history = slices.Clip(saved.history)
	return func() {
		s.update(func() {
			uids := s.truth.uids // a UID is never used twice
			s.truth = saved
			s.truth.objects = maps.Clone(saved.objects)
			s.truth.uids = uids
		})
		s.Cut()
	}
}

// Style says how resource versions look. It must be called before anything is
// set.
func (s *Server) Style(style VersionStyle) {
	s.update(func() {
		if len(s.truth.history) > 0 {
			panic("wiretest: Style after Set")
		}
		s.truth.style = style
	})
}

func marshal(v any) json.RawMessage {
	raw, err := json.Marshal(v)
	if err != nil {
		panic(err)
	}
	return raw
}
