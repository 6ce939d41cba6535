package invalidation

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// status stands for an API error: a type that errors.As looks for.
type status struct{ code int }

func (s *status) Error() string { return fmt.Sprintf("the server answered %d", s.code) }

func TestRevocationSaysWhy(t *testing.T) {
	since := time.Date(2026, 3, 1, 12, 0, 5, 0, time.UTC)
	full := &Revocation{Generation: 3, Reason: Forbidden, Cause: &status{403}, Since: since, ResourceVersion: "812"}
	assert.EqualError(t, full,
		"generation 3 revoked at 2026-03-01T12:00:05Z: Forbidden (last resource version 812): the server answered 403")
	assert.EqualError(t, &Revocation{Generation: 1, Reason: Requested, Since: since},
		"generation 1 revoked at 2026-03-01T12:00:05Z: Requested")
}

func TestRevocationIsAndAs(t *testing.T) {
	notFound := apierrors.NewNotFound(schema.GroupResource{Resource: "pods"}, "a")
	timeout := fmt.Errorf("request: %w", context.DeadlineExceeded)
	for name, tc := range map[string]struct {
		revocation Revocation
		is         []error
		isNot      []error
		status     bool
	}{
		"the reason": {
			revocation: Revocation{Reason: Rewound},
			is:         []error{Rewound},
			isNot:      []error{Relist, Forbidden, nil, context.Canceled},
		},
		"the cause": {
			revocation: Revocation{Reason: Requested, Cause: fs.ErrNotExist},
			is:         []error{Requested, fs.ErrNotExist},
		},
		"a refusal": {
			revocation: Revocation{Reason: Forbidden, Cause: fmt.Errorf("list: %w", &status{403})},
			is:         []error{Forbidden},
			status:     true,
		},
		"a request that timed out is not the reader's deadline": {
			revocation: Revocation{Reason: Relist, Cause: timeout},
			isNot:      []error{context.DeadlineExceeded, context.Canceled},
		},
		"the end of the store's context is": {
			revocation: Revocation{Reason: Closed, Cause: timeout},
			is:         []error{Closed, context.DeadlineExceeded},
		},
		"a 404 is not the absence of an object": {
			revocation: Revocation{Reason: ResourceGone, Cause: fmt.Errorf("%w: %w", notFound, &status{404})},
			is:         []error{ResourceGone, notFound},
		},
		"nor if a program, or another reason, has one": {
			revocation: Revocation{Reason: Requested, Cause: fmt.Errorf("%w: %w", notFound, &status{404})},
			is:         []error{Requested, notFound},
		},
	} {
		t.Run(name, func(t *testing.T) {
			err := fmt.Errorf("wrapped: %w", &tc.revocation)
			for _, target := range tc.is {
				assert.ErrorIs(t, err, target)
			}
			for _, target := range tc.isNot {
				assert.NotErrorIs(t, err, target)
			}
			var s *status
			assert.Equal(t, tc.status, errors.As(err, &s))
			assert.False(t, apierrors.IsNotFound(err))
			var r *Revocation
			assert.ErrorAs(t, err, &r)
		})
	}
}
