package faults

import (
	"fmt"
	"slices"
	"time"

	"github.com/kube-safestore/kube-safestore/invalidation"
)

// failures returns why SafeStore does not pass.
func (f Fault) failures(v Verdict) []string {
	var found []string
	failed := func(format string, args ...any) { found = append(found, fmt.Sprintf(format, args...)) }
	if v.Died != "" {
		failed("ended by itself: %s", v.Died)
	}
	if v.Wrong > 0 {
		failed("%d wrong answers served as good, for %v: %s", v.Wrong, v.WrongFor.Round(time.Millisecond), v.FirstWrong)
	}
	if v.WrongActions > 0 {
		failed("a controller acted %d times on what was wrong", v.WrongActions)
	}
	switch {
	case f.Expect.Told && !v.Told:
		failed("nothing was said")
	case f.Expect.Steady && v.Told:
		failed("reads failed, for %v: %s", v.Reasons, v.Error)
	}
	for _, reason := range v.Reasons {
		if !f.explains(invalidation.Reason(reason)) {
			failed("%q is not the reason: %s", reason, v.Error)
		}
	}
	if heals := f.heals(); !v.Recovered {
		failed("not right again")
	} else if v.RecoversAfter > heals {
		failed("right again only after %v", v.RecoversAfter)
	}
	if f.Expect.Meanwhile && !v.Meanwhile {
		failed("not right before the fault was over")
	}
	if v.Left.Goroutines > 0 {
		failed("%d goroutines are left: %s", v.Left.Goroutines, v.Left.Stacks)
	}
	return found
}

// explains reports whether a reason is right. One that was never ready has no
// revocation to show: there the error says what is waited for.
func (f Fault) explains(reason invalidation.Reason) bool {
	return slices.Contains(f.Expect.Reasons, reason) || f.AtStart && reason == pending
}

// pending is what there is instead of a reason before the first generation.
const pending = "Pending"

func (f Fault) heals() time.Duration {
	if f.Heals == 0 {
		return 45 * time.Second
	}
	return f.Heals
}
