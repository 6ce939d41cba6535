package faults

import (
	"fmt"
	"slices"
	"time"

	"github.com/kube-safestore/kube-safestore/test/faults/internal/system"
	"github.com/kube-safestore/kube-safestore/test/faults/internal/truth"
)

// Verdict is what is to be said of one cache and one fault. Times are zero where
// they do not apply.
type Verdict struct {
	// Fault and System name the cell.
	Fault  string      `json:"fault"`
	System system.Kind `json:"system"`

	// Reads is how many were made, and Wrong how many of them were served as good
	// and were not, for WrongFor in all. Oldest is how old a good answer was, at
	// most. FirstWrong says what the first wrong answer was.
	Reads      int           `json:"reads"`
	Wrong      int           `json:"wrong"`
	WrongFor   time.Duration `json:"wrongFor"`
	Oldest     time.Duration `json:"oldest"`
	FirstWrong string        `json:"firstWrong,omitempty"`

	// Told says that after the fault had begun a read failed, or a generation ended
	// between two reads, and TellsAfter when. Reasons are those that were given.
	// Unready is for how long reads failed in all.
	Told       bool          `json:"told"`
	TellsAfter time.Duration `json:"tellsAfter"`
	Reasons    []string      `json:"reasons,omitempty"`
	Unready    time.Duration `json:"unready"`
	// Error is the first one.
	Error string `json:"error,omitempty"`

	// Recovered says that from some time on all answers were good and right, and
	// RecoversAfter how long that was after the fault was over. Meanwhile says that it
	// was before.
	Recovered     bool          `json:"recovered"`
	RecoversAfter time.Duration `json:"recoversAfter"`
	Meanwhile     bool          `json:"meanwhile"`
	// Waits says that the cache had to be right before.
	Waits bool `json:"waits,omitempty"`

	// Actions is how often a controller acted on what it had read, and WrongActions
	// how often that was wrong. There is one over SafeStore.
	Actions      int `json:"actions,omitempty"`
	WrongActions int `json:"wrongActions,omitempty"`

	// Requests and Relists count what was asked of the server since the fault began:
	// everything, and lists and streams of the whole set.
	Requests int `json:"requests"`
	Relists  int `json:"relists"`

	// Left is what is alive at the end, and left after it. Died says that, and how,
	// the process ended by itself.
	Left system.Left `json:"left"`
	Died string      `json:"died,omitempty"`

	// Failures is why SafeStore does not pass; empty if it does, and for the peers,
	// who did not promise anything.
	Failures []string `json:"failures,omitempty"`
}

// slack is how far clocks of readers and of the truth may be apart: what etcd says
// on its watch takes a moment.
const slack = 250 * time.Millisecond

// Judge compares what a cache answered with what was true. The fault was there
// from begun to over.
func Judge(moments []truth.Moment, samples []system.Sample, bound time.Duration, begun, over time.Time) Verdict {
	v := Verdict{Reads: len(samples)}
	j := newJudge(moments, bound)
	right := time.Time{}   // since when all answers are good and right
	requests, sets := 0, 0 // before the fault
	for i, s := range samples {
		at := s.Time()
		age, wrong := j.judge(s)
		v.Oldest = max(v.Oldest, age)
		if wrong != "" {
			v.Wrong++
			if i+1 < len(samples) {
				v.WrongFor += samples[i+1].Time().Sub(at)
			}
			if v.FirstWrong == "" {
				v.FirstWrong = wrong
			}
		}
		ended := i > 0 && samples[i-1].Good && samples[i-1].Generation != s.Generation
		if !at.Before(begun) && (!s.Good || ended) {
			if !v.Told {
				v.Told, v.TellsAfter = true, at.Sub(begun)
			}
			reason := s.Reason
			if s.Good {
				reason = s.Revoked
			} else if i+1 < len(samples) {
				v.Unready += samples[i+1].Time().Sub(at)
			}
			if !slices.Contains(v.Reasons, reason) {
				v.Reasons = append(v.Reasons, reason)
			}
			if v.Error == "" {
				v.Error = s.Error
			}
		}
		switch {
		case !s.Good || wrong != "":
			right = time.Time{}
		case right.IsZero():
			right = at
		}
		if at.Before(begun) {
			requests, sets = s.Requests, s.Sets
		}
		v.Requests, v.Relists = s.Requests-requests, s.Sets-sets
	}
	if !right.IsZero() {
		v.Recovered, v.RecoversAfter, v.Meanwhile = true, max(0, right.Sub(over)), right.Before(over)
	}
	return v
}

// judge looks at one answer after another.
type judge struct {
	moments []truth.Moment
	bound   time.Duration
	index   map[truth.State][]int // of the moments with that state
	last    int                   // that was served as good
}

func newJudge(moments []truth.Moment, bound time.Duration) *judge {
	j := &judge{moments: moments, bound: bound, index: map[truth.State][]int{}, last: -1}
	for i, m := range moments {
		j.index[m.State] = append(j.index[m.State], i)
	}
	return j
}

// judge returns how old an answer is, and what is wrong with it. Where a state was
// the true one more than once, the time that is best for the answer counts.
func (j *judge) judge(s system.Sample) (age time.Duration, wrong string) {
	if !s.Good {
		return 0, ""
	}
	best := -1
	for _, i := range j.index[s.State] {
		if !j.moments[i].At.After(s.Time().Add(slack)) {
			best = i
		}
	}
	if best < 0 {
		return 0, fmt.Sprintf("%v was not true at any time before", s.State)
	}
	if best+1 < len(j.moments) {
		age = max(0, s.Time().Sub(j.moments[best+1].At))
	}
	switch {
	case best < j.last:
		wrong = fmt.Sprintf("%v after %v: older than an answer before", s.State, j.moments[j.last].State)
	case age > j.bound:
		wrong = fmt.Sprintf("%v, which is %v old", s.State, age.Round(time.Millisecond))
	}
	j.last = max(j.last, best)
	return age, wrong
}
