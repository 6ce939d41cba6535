package watcher

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
)

// A proof, step by step. A set at version 10 is watched.
func TestProofs(t *testing.T) {
	wanted := observation{kind: proofWanted, by: waiter}
	silence := observation{kind: silent, err: errSome}
	late := observation{kind: proofLate, err: errSome}
	missed, caught := observation{kind: proofMissed}, observation{kind: proofCaught}
	at := func(k kind, version string) observation { return observation{kind: k, version: version} }
	says := func(c Agreement, o observation) observation { o.content = c; return o }
	fails := func(k kind, err error) observation { return observation{kind: k, verb: listVerb, err: err} }
	compared := func(c Agreement) observation {
		return observation{kind: auditCompared, content: c, err: errSome}
	}
	steps := func(o ...observation) []observation { return o }
	const behind = "waiting to retry, revoke Stuck, discard, back off, reconnect"
	for name, test := range map[string]struct {
		seen []observation
		want string
	}{
		"asked for":                      {steps(wanted), "watching, ask for the version"},
		"there already":                  {steps(wanted, at(proofListed, "10")), "watching, proven"},
		"further than that":              {steps(wanted, at(changed, "12"), at(proofListed, "11")), "watching, proven"},
		"not there yet":                  {steps(wanted, at(proofListed, "11")), "watching"},
		"the stream comes there":         {steps(wanted, at(proofListed, "11"), at(changed, "11")), "watching, advance, proven"},
		"by a bookmark":                  {steps(wanted, at(proofListed, "11"), at(bookmarked, "11")), "watching, proven"},
		"it does not":                    {steps(wanted, at(proofListed, "11"), late), "watching, peek"},
		"nothing was missed":             {steps(wanted, at(proofListed, "11"), late, at(proofReached, "11")), "watching, moved, proven"},
		"the bookmark is not far enough": {steps(wanted, at(proofListed, "12"), late, at(proofReached, "11")), "watching"},
		"something was missed":           {steps(wanted, at(proofListed, "11"), late, missed), "watching"},
		"and a bookmark proves nothing":  {steps(wanted, at(proofListed, "11"), late, missed, at(proofReached, "11")), "watching"},
		"and came":                       {steps(wanted, at(proofListed, "11"), late, missed, at(changed, "11"), caught), "watching, proven"},
		"and did not":                    {steps(wanted, at(proofListed, "11"), late, missed, late), behind},
		"the server went back":           {steps(wanted, at(proofListed, "9")), "streaming the initial set, revoke Rewound, begin, ask for a WatchList"},

		// What the answer shows.
		"its object is missing":     {steps(wanted, says(Contradicts, at(proofListed, "10"))), "watching, audit"},
		"its object is new":         {steps(wanted, says(Awaits, at(proofListed, "11")), at(bookmarked, "11")), "watching"},
		"it comes":                  {steps(wanted, says(Awaits, at(proofListed, "11")), at(changed, "11"), caught), "watching, proven"},
		"the count is not the same": {steps(wanted, at(proofListed, "11"), late, says(Contradicts, at(proofReached, "11"))), "watching, audit"},
		"no version":                {steps(wanted, at(proofListed, "")), "watching, audit"},

		// Where a peek says nothing.
		"without bookmarks, who waits":   {steps(wanted, at(proofListed, "11"), late, at(proofEnded, "")), "watching, audit"},
		"without bookmarks, a silence":   {steps(silence, at(proofListed, "11"), late, at(proofEnded, "")), "watching, heard"},
		"peek cut short":                 {steps(wanted, at(proofListed, "11"), late, fails(peekFailed, errPeekCut)), "watching, audit"},
		"the version is gone for it":     {steps(wanted, at(proofListed, "11"), late, fails(peekFailed, apierrors.NewResourceExpired("gone"))), "watching, audit"},
		"it is refused":                  {steps(wanted, at(proofListed, "11"), late, fails(peekFailed, apierrors.NewUnauthorized("who"))), "waiting to retry, revoke Unauthorized, drop, discard, back off"},
		"the server has no time for it":  {steps(wanted, at(proofListed, "11"), late, fails(peekFailed, apierrors.NewTooManyRequests("no", 1))), "watching, rest"},
		"deaf, the next one is an audit": {steps(wanted, at(proofListed, "11"), late, at(proofEnded, ""), at(auditListed, "11"), compared(Agrees), wanted, at(proofListed, "12"), late), "watching, audit"},

		// Trouble.
		"no answer":                     {steps(wanted, late), "watching, rest, reconnect"},
		"no answer, after silence":      {steps(silence, late), strings.Replace(behind, "reconnect", "rest, reconnect", 1)},
		"silence while it is under way": {steps(wanted, silence, late), strings.Replace(behind, "reconnect", "rest, reconnect", 1)},
		"no room in the client":         {steps(silence, fails(proofFailed, errNoRoom)), "watching, rest"},
		"its failure (C1)":              {steps(wanted, fails(proofFailed, apierrors.NewInternalError(errSome))), "watching, rest"},
		"it rests":                      {steps(wanted, fails(proofFailed, errSome), wanted), "watching"},
		"until its time":                {steps(wanted, fails(proofFailed, errSome), observation{kind: proofDue}), "watching, ask for the version"},
		"its refusal is an answer":      {steps(wanted, fails(proofFailed, apierrors.NewForbidden(configMaps, "", errSome))), "waiting to retry, revoke Forbidden, drop, discard, back off"},
		"asked for again meanwhile":     {steps(wanted, wanted, at(proofListed, "10")), "watching, ask for the version, proven"},
		"the stream ends meanwhile":     {steps(wanted, observation{kind: streamEnded}, at(proofListed, "10")), "waiting to retry, proven"},

		// Audits.
		"an audit agrees":               {steps(observation{kind: auditWanted}, at(auditListed, "11"), compared(Agrees)), "watching, moved, proven"},
		"it differs":                    {steps(observation{kind: auditWanted}, at(auditListed, "11"), compared(Awaits)), "watching"},
		"the stream has its time":       {steps(observation{kind: auditWanted}, at(auditListed, "11"), compared(Awaits), observation{kind: auditLate}), "watching, compare"},
		"and does not bring it":         {steps(observation{kind: auditWanted}, at(auditListed, "11"), compared(Awaits), observation{kind: auditLate}, compared(Awaits)), "waiting to retry, revoke Diverged, discard, back off"},
		"nor for the proof it pays":     {steps(wanted, at(proofListed, ""), at(auditListed, "11"), compared(Awaits), observation{kind: auditLate}, compared(Awaits)), behind},
		"it is wrong":                   {steps(wanted, at(proofListed, ""), at(auditListed, "10"), compared(Contradicts), observation{kind: auditLate}, compared(Contradicts)), "waiting to retry, revoke Diverged, discard, back off"},
		"nothing tells":                 {steps(wanted, at(proofListed, ""), at(auditListed, ""), compared(Undecided), observation{kind: auditLate}, compared(Undecided)), "watching, rest"},
		"its token expires":             {steps(observation{kind: auditWanted}, observation{kind: auditListed, version: "11", next: "t"}, fails(auditFailed, apierrors.NewResourceExpired("gone"))), "watching, audit"},
		"pages of two versions":         {steps(observation{kind: auditWanted}, observation{kind: auditListed, version: "11", next: "t"}, at(auditListed, "12")), "watching, audit"},
		"it is older":                   {steps(observation{kind: auditWanted}, at(auditListed, "9")), "streaming the initial set, revoke Rewound, begin, ask for a WatchList"},
		"proofs go on beside it":        {steps(observation{kind: auditWanted}, wanted, at(proofListed, "10")), "watching, proven"},
		"one that pays must be younger": {steps(observation{kind: auditWanted}, wanted, at(proofListed, ""), at(auditListed, "10"), compared(Agrees)), "watching, audit, proven"},
	} {
		t.Run(name, func(t *testing.T) {
			s, got := walk(heldAt(watching, "10"), test.seen...)
			assert.Equal(t, test.want, got)
			if strings.HasSuffix(got, "proven") && !strings.Contains(got, "ask") && !strings.Contains(got, "audit") {
				assert.Equal(t, idle, s.proof.stage)
				assert.Zero(t, s.proof.paying)
			}
		})
	}
}

// Bounds of a few seconds: small sets are audited in place of a peek, for large ones the
// version is asked for again while the peeks go on.
func TestTightProofs(t *testing.T) {
	small, large := heldAt(watching, "10"), heldAt(watching, "10")
	small.proof.tight, small.proof.small, large.proof.tight = true, true, true
	late := observation{kind: proofLate, err: errSome}
	ask := []observation{{kind: proofDue, by: schedule}, {kind: proofListed, version: "11"}, late}
	_, got := walk(small, ask...)
	assert.Equal(t, "watching, audit", got)
	s, got := walk(large, ask...)
	assert.Equal(t, "watching, peek", got)
	s, got = walk(s, late)
	assert.Equal(t, "watching, ask for the version", got)
	s, got = walk(s, observation{kind: proofListed, version: "12"}, late)
	assert.Equal(t, "watching, peek", got)
	_, got = walk(s, observation{kind: proofReached, version: "12"})
	assert.Equal(t, "watching, moved, proven", got, "as of the newest question")
	s, _ = walk(s, observation{kind: proofMissed}, observation{kind: relistAsked})
	assert.False(t, s.proof.awaits, "another set, another proof")
}

// A set that lacks something while no watch is open is not ready, and the next watch is what
// will bring it: neither is its pause begun again nor is it given up, unless it is late.
func TestBehindWithoutAWatch(t *testing.T) {
	late := observation{kind: proofLate, err: errSome}
	behind := []observation{{kind: proofWanted, by: waiter}, {kind: proofListed, version: "11"}, late, {kind: proofMissed}, late}
	for p, want := range map[phase]string{waiting: "waiting to retry, revoke Stuck", opening: "opening a watch, revoke Stuck"} {
		s, got := walk(heldAt(p, "10"), behind...)
		assert.Equal(t, want, got)
		assert.Zero(t, s.feed.stucks, "no watch was stuck")
		_, got = walk(s, observation{kind: proofWanted, by: waiter})
		assert.Equal(t, p.String(), got, "no proof is tried for what it cannot show")
		s.feed.phase = opening
		_, got = walk(s, observation{kind: streamOpened})
		assert.Equal(t, "watching, follow, ask for the version", got)
		_, got = walk(s, observation{kind: timedOut})
		assert.Equal(t, "opening a watch, extend, ask for the version", got)
	}
	s := heldAt(opening, "10")
	s.feed.late = true
	_, got := walk(s, behind...)
	assert.Equal(t, "waiting to retry, revoke Stuck, discard, back off, reconnect", got)
}
