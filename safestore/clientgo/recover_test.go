package clientgo_test

import (
	"errors"
	"testing"

	"github.com/stretchr/testify/assert"

	"github.com/kube-safestore/kube-safestore/safestore"
	"github.com/kube-safestore/kube-safestore/safestore/clientgo"
)

func TestRecover(t *testing.T) {
	own := errors.New("own")
	panicking := func(value any) (err error) {
		defer clientgo.Recover(&err)
		if value != nil {
			panic(value)
		}
		return own
	}
	assert.Same(t, own, panicking(nil), "an error without a panic is left alone")
	notReady := &safestore.NotReadyError{Store: "pods"}
	assert.Same(t, notReady, panicking(notReady))
	for _, other := range []any{"a string", 7, own, safestore.ErrNotReady} {
		assert.PanicsWithValue(t, other, func() { _ = panicking(other) })
	}
	assert.PanicsWithValue(t, "clientgo: Recover with a nil pointer", func() { defer clientgo.Recover(nil) },
		"and not only when something has happened")
}
