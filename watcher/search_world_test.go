package watcher

import "strconv"

// The world of the search: a server with two keys, what it has been asked, and the set that
// the machine keeps. It is a comparable value.
//
// What it leaves out: contents other than which object it is and in which state; more than
// one page; fakes, and versions that do not compare; tight bounds; the length of time, since
// any alarm may ring whenever it is set, which allows more than a real clock does; a server
// that was restored and overtakes the version that it had before it is asked again, which no
// version can tell (an audit can, and is tested by itself).

const (
	keys       = 2
	maxCommits = 3
)

// object is which object is there under a key, and in which state. Zero is none.
type object struct{ uid, version int8 }

// collection is what there is under all keys.
type collection [keys]object

// history is the collection at each version, by commit.
type history struct {
	at       [maxCommits + 2]collection
	versions [maxCommits + 2]int8
	last     int8 // index of the newest
	commits  int8 // that were made, also if they were lost since
	restored bool
}

func (h *history) now() int8           { return h.versions[h.last] }
func (h *history) current() collection { return h.at[h.last] }

// index returns that of the newest commit up to a version.
func (h *history) index(version int8) int8 {
	i := int8(0)
	for i < h.last && h.versions[i+1] <= version {
		i++
	}
	return i
}

// commit changes a key: it is created, updated, or deleted. Versions of a restored server
// are odd, so that none stands for two things.
func (h *history) commit(key int, remove bool) bool {
	if h.commits == maxCommits || remove && h.current()[key] == (object{}) {
		return false
	}
	next, c := h.now()+2, h.current()
	if h.restored && next%2 == 0 {
		next--
	}
	switch {
	case remove:
		c[key] = object{}
	case c[key] == (object{}):
		c[key] = object{next, next}
	default:
		c[key].version = next
	}
	h.commits++
	h.last++
	h.at[h.last], h.versions[h.last] = c, next
	return true
}

// restore loses the newest commit.
func (h *history) restore() bool {
	if h.restored || h.last == 0 {
		return false
	}
	h.at[h.last], h.versions[h.last] = collection{}, 0
	h.last--
	h.restored = true
	return true
}

// next returns the first commit after a version: the key that it changed.
func (h *history) next(after int8) (key int, version int8, ok bool) {
	i := h.index(after)
	if i == h.last {
		return 0, 0, false
	}
	for k := range keys {
		if h.at[i][k] != h.at[i+1][k] {
			key = k
		}
	}
	return key, h.versions[i+1], true
}

// reflects reports whether a collection includes everything committed up to a commit: each
// key is as it was then, or as it was at some time since.
func (h *history) reflects(c collection, from int8) bool {
	for k := range keys {
		found := false
		for i := from; i <= h.last; i++ {
			found = found || h.at[i][k] == c[k]
		}
		if !found {
			return false
		}
	}
	return true
}

// answer is a list that the server has made. The zero value is none.
type reply struct {
	made    bool
	version int8
	list    collection
}

// stream is a watch. The zero value is none.
type channel struct {
	open bool
	at   int8 // up to which it has brought everything
}

// void is no commit: what was asked of a history that a restore has made void.
const void = -1

// world is everything.
type world struct {
	m       state
	server  history
	refuses bool // 403 to everything

	asks     request // what the feed waits for
	listed   reply   // of the feed: the set being built
	main     channel
	question bool
	replied  reply
	sample   reply // what the last answer showed
	peek     channel
	auditing bool
	audited  reply
	compares bool
	stage    bool // the alarm of the proof's stage is set
	compare  bool // that of the audit's
	due      bool // that of the next proof

	// The sink.
	set      collection
	ready    bool
	provable bool // the next proof makes it ready
	asOf     int8 // the commit as of which the set is said to hold everything, or void
	begunAs  int8
	askedAs  int8
	goesBy   int8
	auditAs  int8
	auditAt  int8 // the newest version at which an audit has found the set to be right
	awaited  [keys]awaitedEvent
	deleted  [keys]int8 // UID of what was deleted while a proof is under way
	notes    bool       // deletions are noted
}

type awaitedEvent struct {
	is      bool
	removed bool
	obj     object
}

func versionOf(v int8) string {
	if v == 0 {
		return ""
	}
	return strconv.Itoa(int(v) + 100) // so that all have as many digits
}

func (w *world) complete() int8 {
	if w.m.marks.complete == "" {
		return 0
	}
	n, err := strconv.Atoi(w.m.marks.complete)
	if err != nil {
		panic(err)
	}
	return int8(n - 100)
}

// check compares the set, complete at a version, with a list, as safestore's writer does for
// one object.
func (w *world) check(key int, shown object, listed, complete int8) Agreement {
	held := w.set[key]
	switch {
	case held == shown:
		return Agrees
	case held != (object{}) && held.version > listed:
		return Agrees
	case shown == (object{}):
		if listed <= complete {
			return Contradicts
		}
		return Awaits
	case held == (object{}) && w.deleted[key] == shown.uid:
		return Agrees
	case shown.version <= complete:
		return Contradicts
	default:
		return Awaits
	}
}

// reflectsEvent reports whether the set is at least as new as an event.
func (w *world) reflectsEvent(key int, a awaitedEvent) bool {
	held := w.set[key]
	switch {
	case held == (object{}):
		return a.removed || w.deleted[key] == a.obj.uid
	case held.uid != a.obj.uid:
		return held.version > a.obj.version
	case a.removed:
		return false
	default:
		return held.version >= a.obj.version
	}
}

func (w *world) allReflected() bool {
	for k, a := range w.awaited {
		if a.is && !w.reflectsEvent(k, a) {
			return false
		}
	}
	return true
}
