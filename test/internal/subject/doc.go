// Package subject runs stores under test. A [Subject] is a store over a typed,
// dynamic or metadata client, with the same methods for all three, so that one
// test body serves every kind of client. It comes with its own connections, a
// log of its requests, a gate before them, and waiters that end with a message
// that says what was not seen.
package subject
