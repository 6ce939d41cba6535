package faults

import (
	"strconv"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"

	"github.com/kube-safestore/kube-safestore/invalidation"
	"github.com/kube-safestore/kube-safestore/test/faults/internal/system"
	"github.com/kube-safestore/kube-safestore/test/faults/internal/truth"
)

var zero = time.Unix(1_000_000, 0)

func after(seconds float64) time.Time { return zero.Add(time.Duration(seconds * float64(time.Second))) }

// counting is a truth that is n at second n.
func counting(from, to int) []truth.Moment {
	var moments []truth.Moment
	for n := from; n <= to; n++ {
		moments = append(moments, truth.Moment{At: after(float64(n)), State: state(n)})
	}
	return moments
}

func state(n int) truth.State { return truth.State{Objects: 1, Counter: strconv.Itoa(n)} }

func good(seconds float64, n int) system.Sample {
	return system.Sample{At: after(seconds).UnixNano(), Good: true, State: state(n), Generation: 1}
}

func refused(seconds float64, reason invalidation.Reason) system.Sample {
	return system.Sample{At: after(seconds).UnixNano(), Reason: string(reason), Error: "because", Generation: 2}
}

func TestWhatIsWrong(t *testing.T) {
	for name, test := range map[string]struct {
		samples []system.Sample
		wrong   int
		says    string
	}{
		"right":                      {[]system.Sample{good(1.5, 1), good(2.5, 2)}, 0, ""},
		"old, but within the bound":  {[]system.Sample{good(4.5, 1)}, 0, ""},
		"older than the bound":       {[]system.Sample{good(5.5, 1)}, 1, "3.5s old"},
		"never true":                 {[]system.Sample{good(5.5, 77)}, 1, "was not true"},
		"not true yet":               {[]system.Sample{good(2.5, 9)}, 1, "was not true"},
		"back in time":               {[]system.Sample{good(3.5, 3), good(3.6, 2)}, 1, "older than an answer before"},
		"absence of what there is":   {[]system.Sample{{At: after(2.5).UnixNano(), Good: true}}, 1, "was not true"},
		"no answer is no wrong one":  {[]system.Sample{refused(9.5, invalidation.Stale)}, 0, ""},
		"right again, but late":      {[]system.Sample{good(8.5, 1), good(9.5, 9)}, 1, "6.5s old"},
		"as old as it may be, twice": {[]system.Sample{good(4.9, 1), good(5.0, 1), good(5.1, 1)}, 1, "3.1s old"},
	} {
		t.Run(name, func(t *testing.T) {
			v := Judge(counting(1, 10), test.samples, 3*time.Second, after(0), after(10))
			assert.Equal(t, test.wrong, v.Wrong)
			assert.Contains(t, v.FirstWrong, test.says)
			assert.Equal(t, test.wrong == 0, v.FirstWrong == "")
		})
	}
}

// A state that comes back, as when etcd is restored, is right again from then on,
// and what was lost with the backup becomes old.
func TestATruthThatWasRestored(t *testing.T) {
	moments := append(counting(1, 5), truth.Moment{At: after(6), State: state(2)}, truth.Moment{At: after(8), State: state(6)})
	v := Judge(moments, []system.Sample{good(2.5, 2), good(5.5, 5), good(7.5, 5), good(7.6, 2), good(8.5, 6)}, time.Second, after(5), after(6))
	assert.Equal(t, 1, v.Wrong, v.FirstWrong)
	assert.Contains(t, v.FirstWrong, "1.5s old")
	assert.True(t, v.Recovered)
	assert.Equal(t, 1600*time.Millisecond, v.RecoversAfter.Round(time.Millisecond))
}

func TestWhatWasSaidAndWhen(t *testing.T) {
	samples := []system.Sample{good(1.5, 1), good(3.5, 3), refused(4.5, invalidation.Stuck), refused(5.5, invalidation.Stale), good(7.5, 7), good(8.5, 8)}
	for i := range samples {
		samples[i].Requests, samples[i].Sets = 10*i, i
	}
	v := Judge(counting(1, 10), samples, 3*time.Second, after(3), after(6))
	assert.True(t, v.Told)
	assert.Equal(t, 1500*time.Millisecond, v.TellsAfter)
	assert.Equal(t, []string{"Stuck", "Stale"}, v.Reasons)
	assert.Equal(t, "because", v.Error)
	assert.Equal(t, 3*time.Second, v.Unready)
	assert.True(t, v.Recovered)
	assert.False(t, v.Meanwhile)
	assert.Equal(t, 1500*time.Millisecond, v.RecoversAfter)
	assert.Equal(t, 50, v.Requests, "since the last read before the fault")
	assert.Equal(t, 5, v.Relists)

	v = Judge(counting(1, 10), samples[:4], 3*time.Second, after(3), after(6))
	assert.False(t, v.Recovered)
}

// A generation that ends and is followed by the next between two reads has been
// said all the same.
func TestAGenerationThatNoReadMissed(t *testing.T) {
	next := good(4.5, 4)
	next.Generation, next.Revoked = 2, "Relist"
	v := Judge(counting(1, 10), []system.Sample{good(3.5, 3), next}, 3*time.Second, after(3), after(4))
	assert.True(t, v.Told)
	assert.Equal(t, []string{"Relist"}, v.Reasons)
	assert.Zero(t, v.Unready)
}

func TestSafeStoreFailsForEachBrokenPromise(t *testing.T) {
	stale := Expect{Reasons: []invalidation.Reason{invalidation.Stale}}
	right := Verdict{Recovered: true, Meanwhile: true}
	told := Verdict{Recovered: true, Told: true, Reasons: []string{"Stale"}}
	with := func(v Verdict, change func(*Verdict)) Verdict { change(&v); return v }
	for name, test := range map[string]struct {
		fault Fault
		v     Verdict
		says  string // nothing: it passes
	}{
		"right all the time":        {Fault{Expect: stale}, right, ""},
		"said":                      {Fault{Expect: stale}, told, ""},
		"a wrong answer":            {Fault{}, with(right, func(v *Verdict) { v.Wrong = 1 }), "1 wrong answers"},
		"a wrong action":            {Fault{}, with(right, func(v *Verdict) { v.WrongActions = 3 }), "acted 3 times"},
		"died":                      {Fault{}, with(right, func(v *Verdict) { v.Died = "a panic" }), "a panic"},
		"not said":                  {Fault{Expect: Expect{Told: true}}, right, "nothing was said"},
		"said, but steady":          {Fault{Expect: Expect{Steady: true, Reasons: stale.Reasons}}, told, "reads failed"},
		"another reason":            {Fault{Expect: stale}, with(told, func(v *Verdict) { v.Reasons = []string{"Stale", "Rewound"} }), `"Rewound" is not the reason`},
		"no reason":                 {Fault{Expect: stale}, with(told, func(v *Verdict) { v.Reasons = []string{""} }), `"" is not the reason`},
		"pending at the start":      {Fault{AtStart: true}, with(told, func(v *Verdict) { v.Reasons = []string{"Pending"} }), ""},
		"pending later":             {Fault{}, with(told, func(v *Verdict) { v.Reasons = []string{"Pending"} }), `"Pending" is not`},
		"not right again":           {Fault{}, Verdict{}, "not right again"},
		"right again late":          {Fault{Heals: time.Second}, with(right, func(v *Verdict) { v.RecoversAfter = 2 * time.Second }), "only after 2s"},
		"right only after the end":  {Fault{Expect: Expect{Meanwhile: true}}, with(right, func(v *Verdict) { v.Meanwhile = false }), "not right before"},
		"goroutines that are left":  {Fault{}, with(right, func(v *Verdict) { v.Left.Goroutines = 2 }), "2 goroutines"},
		"right before the fault is": {Fault{Expect: Expect{Meanwhile: true}}, right, ""},
	} {
		t.Run(name, func(t *testing.T) {
			failures := test.fault.failures(test.v)
			if test.says == "" {
				assert.Empty(t, failures)
				return
			}
			assert.Len(t, failures, 1)
			assert.Contains(t, failures[0], test.says)
		})
	}
}
