package truth

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/serializer/protobuf"
	"k8s.io/client-go/kubernetes/scheme"

	"github.com/kube-safestore/kube-safestore/test/internal/subject"
)

func object(name, value string) *corev1.ConfigMap {
	return &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{
		Name: name, Annotations: map[string]string{subject.ValueAnnotation: value},
	}}
}

func TestAStateIsTheSameHoweverItIsPutTogether(t *testing.T) {
	var one, other State
	for _, obj := range []*corev1.ConfigMap{object(Counter, "5"), object(Blinker, "4"), object("another", "3")} {
		one.Add(obj)
	}
	for _, obj := range []*corev1.ConfigMap{object("something", "9"), object(Blinker, "4"), object(Counter, "5")} {
		other.Add(obj)
	}
	assert.Equal(t, State{Objects: 3, Counter: "5", Blinker: "4"}, one)
	assert.Equal(t, one, other)
	other.Add(object("more", ""))
	assert.NotEqual(t, one, other)
}

func TestWhatEtcdStoresIsRead(t *testing.T) {
	serializer := protobuf.NewSerializer(scheme.Scheme, scheme.Scheme)
	binary, err := runtime.Encode(scheme.Codecs.EncoderForVersion(serializer, corev1.SchemeGroupVersion), object(Counter, "5"))
	require.NoError(t, err)
	for name, test := range map[string]struct {
		data, value string
		fails       bool
	}{
		"protobuf": {data: string(binary), value: "5"},
		"JSON":     {data: `{"kind":"Thing","metadata":{"annotations":{"` + subject.ValueAnnotation + `":"6"}}}`, value: "6"},
		"nothing":  {},
		"garbage":  {data: "garbage", fails: true},
		"broken":   {data: `{"kind":`, fails: true},
	} {
		t.Run(name, func(t *testing.T) {
			value, err := stored([]byte(test.data))
			assert.Equal(t, test.value, value)
			assert.Equal(t, test.fails, err != nil, "%v", err)
		})
	}
}
