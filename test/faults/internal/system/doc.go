// Package system runs a cache under test in a process of its own, and reads it
// all the time: SafeStore, a client-go informer or a controller-runtime cache, on
// the same objects. A process can be stopped and continued, can die of what it
// does, and its goroutines and its heap are nobody else's.
//
// A program that calls [Start] must begin its main function, or its TestMain, with
// [ServeIfAsked]: the processes are further instances of the program.
package system
