package safestore

import (
	"context"
	"reflect"
	"time"

	"github.com/kube-safestore/kube-safestore/invalidation"
	"github.com/kube-safestore/kube-safestore/token"
)

// Readiness is what a [Store] and a [Group] have in common, whatever they hold.
// Only this package implements it. All methods may be called from any goroutine,
// and none but WaitReady waits.
type Readiness interface {
	// Name returns how it is called in logs, errors and status.
	Name() string
	// Token returns the current token.
	Token() *token.Token
	// NotReady returns nil if reads are answered now, else why they are not: an
	// error that is ErrNotReady.
	NotReady() error
	// WaitReady waits until it is ready, and returns the token.
	WaitReady(ctx context.Context) (*token.Token, error)
	// OnReady and OnRevoke register functions that hear of readiness and its end.
	OnReady(f func(*token.Token)) (remove func())
	OnRevoke(f func(*invalidation.Revocation)) (remove func())
	// OnRevokeSync registers a function that readiness waits for before it returns.
	OnRevokeSync(limit time.Duration, f func(context.Context, *invalidation.Revocation)) (remove func())
	// Status returns its own status, and Stores that of each store that it depends
	// on.
	Status() Status
	Stores() []Status

	// follow tells one of every move of the token, before hooks and waiting readers
	// hear of it, beginning at once with what is so now.
	follow(one follower) (leave func())
	// waitStarted reports whether it is driven, giving it a moment.
	waitStarted(ctx context.Context) bool
	// dependsOn reports whether it is a group, or part of it is.
	dependsOn(*Group) bool
	// takeInto adds the snapshots of all stores that are ready, and returns the errors
	// of those that are not.
	takeInto(joint *JointSnapshot) (failed []error)
}

var (
	_ Readiness = (*Store[Object])(nil)
	_ Readiness = (*Group)(nil)
)

// isNil reports whether r is nil or a nil pointer in an interface.
func isNil(r Readiness) bool {
	v := reflect.ValueOf(r)
	return r == nil || v.Kind() == reflect.Pointer && v.IsNil()
}

// NotReady returns nil if reads are answered now, else a [*NotReadyError] that
// says why they are not. It does not wait.
func (s *Store[T]) NotReady() error {
	_, err := s.Snapshot()
	return err
}

// Stores returns the store's own status: see [Readiness].
func (s *Store[T]) Stores() []Status { return []Status{s.Status()} }

func (s *Store[T]) dependsOn(*Group) bool { return false }
