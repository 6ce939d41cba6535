package watcher

import "github.com/kube-safestore/kube-safestore/internal/versions"

// marks are the three resource versions that matter. Each has one meaning.
type marks struct {
	// complete is up to where the set holds everything. A watch is resumed from it.
	complete string
	// streamed is up to where the open watch has brought everything. It is behind
	// complete where a proof has shown that the watch had nothing to bring, and a
	// lower version on that same watch means that the server went back in time.
	streamed string
	// seen is the highest version that the server has shown in any answer. A lower
	// one in a consistent read means that the server went back in time.
	seen string
}

// show takes note of a version in an answer of the server.
func (v *marks) show(version string) {
	if version != "" {
		v.seen = versions.Newest(version, v.seen)
	}
}

// stream moves the marks to what the open watch has brought. Versions that do not
// compare follow the stream; those that do never go back, since some servers send a
// deleted object with the version that it had last.
func (v *marks) stream(version string) {
	if version == "" {
		return
	}
	if !versions.Older(version, v.streamed) {
		v.streamed = version
	}
	if !versions.Older(version, v.complete) {
		v.complete = version
	}
	v.show(version)
}

// reach moves complete forward, to a version that a proof or an audit has shown to
// be reached. It reports whether that is news.
func (v *marks) reach(version string) bool {
	if version == "" || versions.Reached(v.complete, version) {
		return false
	}
	v.complete = version
	v.show(version)
	return true
}

// resumable reports whether a watch can be resumed.
func (v *marks) resumable() bool { return versions.Resumable(v.complete) }
