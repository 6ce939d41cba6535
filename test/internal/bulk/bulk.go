// Package bulk fills a cluster with more objects than a test has the patience to
// create one by one: it writes them to etcd, as the API server would.
package bulk

import (
	"context"
	"fmt"
	"path"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/serializer/protobuf"
	"k8s.io/apimachinery/pkg/util/uuid"
	"k8s.io/client-go/kubernetes/scheme"
)

// perWrite is how many objects one transaction holds; etcd takes 128.
const perWrite = 100

// ConfigMaps writes n ConfigMaps to a namespace. What make returns for each
// number needs a name; what the API server sets, apart from managed fields, is
// added.
func ConfigMaps(ctx context.Context, etcd *clientv3.Client, namespace string, n int, make func(i int) *corev1.ConfigMap) error {
	serializer := protobuf.NewSerializer(scheme.Scheme, scheme.Scheme)
	encoder := scheme.Codecs.EncoderForVersion(serializer, corev1.SchemeGroupVersion)
	now := metav1.NewTime(time.Now())
	var puts []clientv3.Op
	for i := range n {
		obj := make(i)
		obj.Namespace, obj.UID, obj.CreationTimestamp = namespace, uuid.NewUUID(), now
		value, err := runtime.Encode(encoder, obj)
		if err != nil {
			return err
		}
		puts = append(puts, clientv3.OpPut(path.Join("/registry/configmaps", namespace, obj.Name), string(value)))
		if len(puts) < perWrite && i < n-1 {
			continue
		}
		if _, err := etcd.Txn(ctx).Then(puts...).Commit(); err != nil {
			return fmt.Errorf("objects up to %d: %w", i, err)
		}
		puts = puts[:0]
	}
	return nil
}
