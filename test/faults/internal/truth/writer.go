package truth

import (
	"context"
	"strconv"
	"sync"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/uuid"

	"github.com/kube-safestore/kube-safestore/test/internal/subject"
)

// Pace is how often the truth changes, and blinkEvery which of the changes are
// creations and deletions.
const (
	Pace       = 100 * time.Millisecond
	blinkEvery = 7
)

// Writer changes the truth, past all API servers. Make one with [NewWriter].
type Writer struct {
	client *clientv3.Client
	prefix string
	encode func(metav1.ObjectMeta) ([]byte, error)

	mu     sync.Mutex // held while something is written
	n      int
	uid    types.UID // of the counter
	blinks bool      // the blinker is there
}

// NewWriter returns a writer of objects under a prefix of etcd. encode makes what
// is stored for an object with that metadata.
func NewWriter(client *clientv3.Client, prefix string, encode func(metav1.ObjectMeta) ([]byte, error)) *Writer {
	return &Writer{client: client, prefix: prefix, encode: encode}
}

// Begin creates the counter, and forgets what there was before.
func (w *Writer) Begin(ctx context.Context) error {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.uid, w.blinks = uuid.NewUUID(), false
	return w.put(ctx, Counter, w.uid)
}

// Run changes the truth until ctx ends. What cannot be written is tried no second
// time: the next change is another one.
func (w *Writer) Run(ctx context.Context) {
	pace := time.NewTicker(Pace)
	defer pace.Stop()
	for {
		select {
		case <-pace.C:
			w.change(ctx)
		case <-ctx.Done():
			return
		}
	}
}

// Pause keeps the truth as it is until the returned function is called.
func (w *Writer) Pause() (resume func()) {
	w.mu.Lock()
	return sync.OnceFunc(w.mu.Unlock)
}

func (w *Writer) change(ctx context.Context) {
	w.mu.Lock()
	defer w.mu.Unlock()
	ctx, cancel := context.WithTimeout(ctx, 2*time.Second)
	defer cancel()
	switch { // what fails may have been committed all the same: the record says
	case (w.n+1)%blinkEvery != 0:
		_ = w.put(ctx, Counter, w.uid)
	case w.blinks:
		w.n++
		_, err := w.client.Delete(ctx, w.prefix+Blinker)
		w.blinks = err != nil
	default:
		w.blinks = w.put(ctx, Blinker, uuid.NewUUID()) == nil
	}
}

func (w *Writer) put(ctx context.Context, name string, uid types.UID) error {
	w.n++
	data, err := w.encode(metav1.ObjectMeta{
		Name:              name,
		UID:               uid,
		CreationTimestamp: metav1.Now(),
		Annotations:       map[string]string{subject.ValueAnnotation: strconv.Itoa(w.n)},
	})
	if err != nil {
		return err
	}
	_, err = w.client.Put(ctx, w.prefix+name, string(data))
	return err
}
