package clientgo

import "github.com/kube-safestore/kube-safestore/safestore"

// Recover stores in err the [*safestore.NotReadyError], or the
// [*safestore.PartialError], with which a List of an [Indexer] has panicked. It must
// be deferred itself, in the function whose error it is to be:
//
//	defer clientgo.Recover(&err)
//
// It leaves err alone if there was no panic, and goes on with a panic of any other
// value. It panics if err is nil.
func Recover(err *error) {
	if err == nil {
		panic("clientgo: Recover with a nil pointer")
	}
	switch value := recover().(type) {
	case nil:
	case *safestore.NotReadyError:
		*err = value
	case *safestore.PartialError:
		*err = value
	default:
		panic(value)
	}
}
