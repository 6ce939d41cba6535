// Package e2e tests SafeStore on a real control plane: what a user's program
// meets when API servers restart, etcd forgets, rights and resources go away and
// come back, and connections break. Every test states what the store holds, what
// its tokens said, and what was asked of the server.
//
// Tests that break only their own connections share one cluster, each in a
// namespace of its own; tests that break a server have a cluster to themselves.
// The numbers in brackets are those of the cases that a test makes sure of.
package e2e
