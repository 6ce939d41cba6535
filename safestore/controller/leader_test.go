package controller_test

import (
	"context"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/kubernetes/fake"
	clienttesting "k8s.io/client-go/testing"
	"k8s.io/klog/v2"

	"github.com/kube-safestore/kube-safestore/safestore/controller"
	"github.com/kube-safestore/kube-safestore/token"
)

// C54: a leader that cannot renew its lock stops work although its stores are ready.
// The next one works under the same token of the store.
func TestC54WorkEndsWithTheLeadership(t *testing.T) {
	onBench(t, func(t *testing.T, b *bench) {
		ctx, cancel := context.WithCancel(klog.NewContext(t.Context(), klog.Logger{}))
		b.maps.Delete("default", "b")
		synctest.Wait()
		client := fake.NewClientset()
		var cutOff atomic.Bool
		client.PrependReactor("*", "leases", func(clienttesting.Action) (bool, runtime.Object, error) {
			return cutOff.Load(), nil, errTest
		})
		var works []*controller.Controller
		ended := map[string]time.Time{}
		lead := func(identity string) <-chan error {
			c := b.new(controller.Options{}, func(ctx context.Context, req controller.Request) (controller.Result, error) {
				require.NoError(t, b.history.acts(ctx, req))
				<-ctx.Done()
				ended[identity] = time.Now()
				return controller.Result{}, b.history.acts(ctx, req) // too late
			})
			works = append(works, c)
			done := make(chan error, 1)
			go func() { done <- runAsLeader(ctx, client, identity, c.Run) }()
			synctest.Wait()
			return done
		}
		first := lead("first")
		b.happened("a begins under 1", "a acts under 1")

		cutOff.Store(true)
		lost := time.Now()
		require.NoError(t, <-first)
		assert.Equal(t, ended["first"], time.Now(), "when work has ended, and no later")
		assert.LessOrEqual(t, time.Since(lost), 12*time.Second)
		assert.Equal(t, token.Ready, b.mapStore.Token().State())
		b.happened("a was cut")

		cutOff.Store(false)
		second := lead("second")
		b.happened()
		time.Sleep(20 * time.Second) // the first holds it until then
		synctest.Wait()
		b.happened("a begins under 1", "a acts under 1")
		b.mapStore.Revoke(b.mapStore.Token(), errTest)
		time.Sleep(time.Minute)
		synctest.Wait()
		assert.Equal(t, 1, works[1].Status().Running, "the leadership outlives a token")
		assert.EqualValues(t, 1, works[1].Status().Cut)
		cancel()
		require.NoError(t, <-second)
	})
}
