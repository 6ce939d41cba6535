// Package houserules holds the rules that this repository keeps, as tests that
// fail when one is broken. It has no code of its own.
//
// Each rule is a function from source to what is wrong with it, with two tests:
// one shows on a small bad example that the rule bites, one applies it to the
// repository.
package houserules
