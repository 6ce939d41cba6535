package main

import (
	"bytes"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
)

func TestTimeline(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var out bytes.Buffer
		line := newTimeline(&out, false)
		line.title(1, "First")
		time.Sleep(1234 * time.Millisecond)
		line.say("before there is %s", "a store")
		line.state = func() string { return "gen 12 Pending" }
		line.say("a text that is so long that it has to go on in the next line, where it is indented by another %d spaces", 2)
		line.took(1234 * time.Millisecond)
		assert.Equal(t, ""+
			"1. First\n"+
			"   1.23s                 before there is a store\n"+
			"   1.23s  gen 12 Pending  a text that is so long that it has to go on in the next line, where it is indented by\n"+
			"                           another 2 spaces\n"+
			"                         step took 1.23s\n\n", out.String())
	})
}

func TestTimelineInColour(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var out bytes.Buffer
		line := newTimeline(&out, true)
		for _, state := range []string{"gen 1 Pending", "gen 1 Ready"} {
			line.state = func() string { return state }
			line.say("x")
		}
		assert.Equal(t, ""+
			"   0.00s  \x1b[33mgen 1 Pending\x1b[0m  x\n"+
			"   0.00s  \x1b[32mgen 1 Ready  \x1b[0m  x\n", out.String())
	})
}

func TestWrap(t *testing.T) {
	for text, want := range map[string][]string{
		"":                    {""},
		"1234567890":          {"1234567890"},
		"12345 7890":          {"12345 7890"},
		"12345 78901":         {"12345", "  78901"},
		"a b  c d e f g h":    {"a b  c d e", "  f g h"},
		"tooLongToBreak x":    {"tooLongToBreak x"},
		"x tooLongToBreak":    {"x tooLongToBreak"},
		"abcdef tooLongToFit": {"abcdef", "  tooLongToFit"},
	} {
		assert.Equal(t, want, wrap(text, 10), text)
	}
}

func TestSeconds(t *testing.T) {
	for d, want := range map[time.Duration]string{
		0:                       "0.0ms",
		1234 * time.Microsecond: "1.2ms",
		100 * time.Millisecond:  "0.10s",
		83 * time.Second:        "83.00s",
	} {
		assert.Equal(t, want, seconds(d))
	}
}
