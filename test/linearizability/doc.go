// Package linearizability checks that concurrent calls of a token source have
// the effect of the same calls made one after the other, each at some moment
// between its beginning and its end.
//
// It records histories of many goroutines and gives them to porcupine, with a
// sequential model of package token. It also checks that the check can fail: a
// source with a bug in it is told from one without.
package linearizability
