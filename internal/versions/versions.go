// Package versions compares resource versions: apimachinery's comparison, with an
// answer also where versions do not compare.
package versions

import "k8s.io/apimachinery/pkg/util/resourceversion"

// Older reports whether version a is known to be older than b. Versions that do
// not compare, as those of some aggregated servers, are never known to be.
func Older(a, b string) bool {
	order, err := resourceversion.CompareResourceVersion(a, b)
	return err == nil && order < 0
}

// Reached reports whether what is at version a is known to hold all that was
// there at version b. Where versions do not compare, only the same one is.
func Reached(a, b string) bool { return a == b || Older(b, a) }

// Newest returns the later of two versions, or a where they do not compare.
func Newest(a, b string) string {
	if Older(a, b) {
		return b
	}
	return a
}

// Resumable reports whether a watch can be asked to continue from a version: not
// from none, and not from "0", which means any.
func Resumable(v string) bool { return v != "" && v != "0" }
