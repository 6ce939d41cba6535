package safestore

import (
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strings"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
)

// mutationPeriod is how often the mutation detector looks.
const mutationPeriod = time.Second

// mutationDetector compares the objects of a store with copies of them. The
// writer tells it of each object before any reader can have it. A nil one does
// nothing.
type mutationDetector[T Object] struct {
	store  string
	report func(*MutationError)

	mu   sync.Mutex
	kept map[types.NamespacedName]*original[T] // what is in the store
	gone []*original[T]                        // what was, since the last look
}

// original is an object, and a copy of what it was when it was kept or last
// reported. Only the goroutine that looks reads and replaces the copy.
type original[T Object] struct {
	object T
	copied runtime.Object
}

func newMutationDetector[T Object](store string, report func(*MutationError)) *mutationDetector[T] {
	if report == nil {
		report = func(e *MutationError) { panic(e) }
	}
	return &mutationDetector[T]{store: store, report: report, kept: map[types.NamespacedName]*original[T]{}}
}

// change takes note of a set that is about to be published, and differs from the
// one before in what it has under a key.
func (d *mutationDetector[T]) change(key types.NamespacedName, set objects[T]) {
	if d == nil {
		return
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	if old, ok := d.kept[key]; ok {
		d.gone = append(d.gone, old)
		delete(d.kept, key)
	}
	if obj, ok := set.get(key); ok {
		d.kept[key] = &original[T]{obj, copyOf(obj)}
	}
}

// replace takes note of a whole set that is about to be published. Objects that
// were in the one before have their copies already; a new copy would hide what
// has become of them since.
func (d *mutationDetector[T]) replace(set objects[T]) {
	if d == nil {
		return
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	next := make(map[types.NamespacedName]*original[T], set.count)
	for obj := range set.all() {
		key := Key(obj)
		if old, ok := d.kept[key]; ok && any(old.object) == any(obj) {
			next[key] = old
			delete(d.kept, key)
			continue
		}
		next[key] = &original[T]{obj, copyOf(obj)}
	}
	d.gone = slices.AppendSeq(d.gone, maps.Values(d.kept))
	d.kept = next
}

// run looks for mutations until the returned function is called, which waits for
// a last look.
func (d *mutationDetector[T]) run() (stop func()) {
	if d == nil {
		return func() {}
	}
	ending, ended := make(chan struct{}), make(chan struct{})
	go func() {
		defer func() {
			// Run waits through a panic, or the program could end well before it is
			// told of it. It does not wait for a report that ended its goroutine, as
			// t.FailNow does.
			if v := recover(); v != nil {
				panic(v)
			}
			close(ended)
		}()
		ticker := time.NewTicker(mutationPeriod)
		defer ticker.Stop()
		for running := true; running; {
			select {
			case <-ticker.C:
			case <-ending:
				running = false
			}
			d.look()
		}
	}()
	return func() {
		close(ending)
		<-ended
	}
}

// look reports what has changed since the last look. The writer goes on
// meanwhile.
func (d *mutationDetector[T]) look() {
	d.mu.Lock()
	all := slices.AppendSeq(d.gone, maps.Values(d.kept))
	d.gone = nil
	d.mu.Unlock()
	for _, o := range all {
		fields, more := changedFields(o.copied, o.object)
		if len(fields) == 0 {
			continue
		}
		was := o.copied
		o.copied = copyOf(o.object)
		d.report(&MutationError{Store: d.store, Type: kindName(was), Key: Key(was.(Object)), Fields: fields, More: more})
	}
}

func copyOf(obj Object) runtime.Object {
	copied := obj.DeepCopyObject()
	if reflect.TypeOf(copied) != reflect.TypeOf(obj) {
		panic(fmt.Sprintf("safestore: mutation detector: DeepCopyObject of %T returns a %T", obj, copied))
	}
	return copied
}

// kindName returns what people call the type of an object.
func kindName(obj runtime.Object) string {
	if _, ok := obj.(runtime.Unstructured); ok {
		if kind := obj.GetObjectKind().GroupVersionKind(); kind.Kind != "" {
			return kind.GroupVersion().String() + "." + kind.Kind
		}
	}
	return strings.TrimLeft(fmt.Sprintf("%T", obj), "*")
}
