package main

const (
	feed  = "watcher/feed.go"
	moves = "watcher/feed_moves.go"
	proof = "watcher/proof.go"
	audit = "watcher/audit.go"
)

var mutants = []mutant{
	// The feed.
	{moves, "f.held, f.built, f.pending = true, false, !open || f.implausible", "f.held, f.built, f.pending = true, false, false",
		"a list is ready without its watch, or a proof"},
	{moves, "if f.pageVersion != \"\" && o.version != f.pageVersion {", "if false {",
		"pages of two versions make a set"},
	{moves, "if m.marks.seen != \"\" && versions.Older(o.version, m.marks.seen) {", "if false && versions.Older(o.version, m.marks.seen) {",
		"a set from before what was seen is taken"},
	{moves, "m.marks.seen = \"\"\n\tm.build()", "m.build()",
		"a rewound server is never taken as it is"},
	{moves, "case cut:\n\t\tm.feed.abrupt = 0\n\t\tm.doubt()", "case cut:\n\t\tm.feed.abrupt = 0",
		"a cut raises no doubt"},
	{moves, "if list {\n\t\tm.abandonProof()\n\t\tf.held, f.built = false, false\n\t}", "if list {\n\t\tm.abandonProof()\n\t}",
		"a set is resumed that is known to be wrong"},
	{moves, "if isAboutVersion(err) && m.isBarren() {", "if false {",
		"a watch that fails is opened from the same version for ever"},
	{moves, "if isRefusal(seen) {\n\t\tf.denied = asked\n\t}", "_ = asked",
		"it is forgotten which verb was refused"},
	{moves, "given := m.feed.stucks >= maxStucks", "given := m.feed.stucks >= maxStucks && false",
		"being stuck never ends in a list"},
	{moves, "if f.phase == waiting {\n\t\treturn\n\t}", "",
		"a proof that finds something missing puts off the next attempt"},
	{moves, "if m.feed.phase == watching || m.feed.phase == opening && m.feed.late {\n\t\tm.stuck(cause)\n\t\treturn\n\t}", "m.stuck(cause)\n\treturn",
		"a watch that is just being opened is given up for what it would bring"},
	{moves, "m.retreat(true)", "m.doubt()",
		"the list that a policy wants does not come"},
	{feed, "if !versions.Resumable(o.version) {", "if false && !versions.Resumable(o.version) {",
		"a marker without a version is believed"},
	{feed, "f.suspect, f.listOnce = true, true", "f.listOnce = true",
		"a WatchList without marker is asked for again each time"},
	{feed, "m.out.reconnect = true\n\t\tm.doubt()\n\t\tm.reopen(nil, noPause)", "m.out.reconnect = true\n\t\tm.reopen(nil, noPause)",
		"a time-out of our own raises no doubt"},
	{feed, "o.err = &unwatchable{o.err}", "_ = o.err",
		"422 to a plain watch is taken for trouble"},

	// The proof.
	{proof, "p.paying, p.owed = p.owed, 0", "p.paying = p.owed",
		"a debt is never paid"},
	{proof, "due &^= doubt", "due = 0",
		"nothing is proven while there is no watch"},
	{proof, "case versions.Older(o.version, p.floor):", "case false && versions.Older(o.version, p.floor):",
		"a rewound server is not noticed by a proof"},
	{proof, "case !versions.Resumable(o.version), o.content == Contradicts:", "case !versions.Resumable(o.version):",
		"what the answer shows is passed over"},
	{proof, "p.awaits = p.awaits || o.content == Awaits", "",
		"what is in the answer and still to come is not waited for"},
	{proof, "p.target == \"\", p.awaits, !versions.Reached(m.marks.complete, p.target):", "p.target == \"\", !versions.Reached(m.marks.complete, p.target):",
		"it is proven although something was missed"},
	{proof, "p.awaits, !versions.Reached(m.marks.complete, p.target):", "p.awaits, false && !versions.Reached(m.marks.complete, p.target):",
		"it is proven before the version is reached"},
	{proof, "case m.proof.awaits:\n\t\tif", "case false:\n\t\tif",
		"a bookmark passes over what was missed"},
	{proof, "if err == nil && p.paying == silence && !p.awaits {", "if err == nil && !p.awaits {",
		"who waits for a proof is given a sign of life"},
	{proof, "m.proof.owed |= owed\n", "_ = owed\n",
		"a proof that fails is not owed any more"},
	{proof, "sent := !errors.Is(err, errNoRoom)", "sent := !errors.Is(err, errNoRoom) || true",
		"time in the client is the server's silence"},
	{proof, "return m.endsProof(verdict{kind: behind, err: errMissed})", "return m.endsProof(verdict{})",
		"what a watch does not bring revokes nothing"},

	// The audit.
	{audit, "case versions.Older(o.version, a.floor):", "case false && versions.Older(o.version, a.floor):",
		"a rewound server is not noticed by an audit"},
	{audit, "if o.content == Agrees {", "if true {",
		"an audit agrees with anything"},
	{audit, "if a.stage != noAudit {\n\t\ta.again = true\n\t\treturn\n\t}", "if a.stage != noAudit {\n\t\ta.pays = true\n\t\treturn\n\t}",
		"an audit pays for a proof that was asked for after it"},
	{audit, "m.out.moved = m.marks.reach(a.version)", "",
		"an audit does not move the set's version"},
	{audit, "if !a.final {", "if false {",
		"the stream has no time to bring what an audit found"},

	// Versions, and signs of life.
	{"watcher/marks.go", "if !versions.Older(version, v.complete) {", "if true || !versions.Older(version, v.complete) {",
		"the set's version goes back"},
	{"watcher/life.go", "return s.feed.timely", "return true",
		"a watch that was cut and opened again is a sign of life"},
	{"watcher/life.go", "case pageListed, initialAdded, initialEnd, changed, bookmarked:", "case pageListed, initialAdded, initialEnd, changed, bookmarked, failed:",
		"an error is a sign of life"},

	// The comparison with the set.
	{"safestore/audit.go", "case exists && versions.Older(listed, held.version):\n\t\treturn watcher.Agrees // changed", "case exists && versions.Older(shown.version, held.version):\n\t\treturn watcher.Agrees // changed",
		"an audit overlooks an object that is newer than it can be"},
	{"safestore/audit.go", "return ok && uid != \"\" && deleted == uid", "return ok && deleted == deleted",
		"the deletion of another object explains an absence"},
	{"safestore/audit.go", "return event == watch.Deleted || w.deleted.explains(key, shown.uid)", "return true",
		"what a peek brings and the set has not is passed over"},
}
