package watcher

// debts are the parties to whom a proof is owed. A debt is paid by a proof that was
// begun after it was made, or by a set that was; nothing else pays it, but for
// silence, which a sign of life explains as well.
type debts uint8

const (
	// schedule is the bound: the newest proof is getting old.
	schedule debts = 1 << iota
	// waiter is somebody who waits: a caller of Sync, or a token that may not be
	// ready without one.
	waiter
	// doubt is a stream that was cut, or a set that may be another server's.
	doubt
	// silence is a stream from which nothing was heard for MaxSilence.
	silence
	// contents is a set that is not plausible: it takes an audit to believe it.
	contents
)
