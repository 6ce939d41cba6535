// Package truth knows every state that a collection ever had, and when, since it
// asks etcd itself: no API server stands between it and the truth, and no fault
// of one interrupts it. It also makes the truth move, by writing to etcd.
//
// What counts of a state are the number of objects and the values of two of them,
// [Counter], which is updated again and again, and [Blinker], which is created and
// deleted: no two states that differ by a commit look the same.
//
// # Concurrency
//
// All methods may be called from any goroutine.
package truth
