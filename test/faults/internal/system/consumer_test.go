package system

import (
	"testing"
	"testing/synctest"

	"github.com/stretchr/testify/assert"
)

func TestConsumersBehaveAsTheyAreTold(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := &consumer{}
		c.handle()
		c.behave(Blocked)
		done := false
		go func() {
			c.handle()
			done = true
		}()
		synctest.Wait()
		assert.False(t, done)
		c.behave(Panicking)
		synctest.Wait()
		assert.True(t, done, "released")
		assert.Panics(t, c.handle)
		c.behave(Well)
		c.handle()
	})
}
