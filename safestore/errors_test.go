package safestore

import (
	"context"
	"encoding/base64"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	utilerrors "k8s.io/apimachinery/pkg/util/errors"
	"k8s.io/apimachinery/pkg/watch"

	"github.com/kube-safestore/kube-safestore/invalidation"
	"github.com/kube-safestore/kube-safestore/token"
)

var (
	resource  = schema.GroupResource{Resource: "configmaps"}
	forbidden = apierrors.NewForbidden(resource, "", errors.New("the user may not list it"))
	noCRD     = apierrors.NewGenericServerResponse(http.StatusNotFound, "list", resource, "", "page not found", 0, true)
	notFound  = apierrors.NewNotFound(resource, "something else")
	busy      = apierrors.NewTooManyRequests("later", 7)
	errTest   = errors.New("the program's own reason")
)

// errServerTimedOut is how a time-out of a request looks when it comes from net/http.
var errServerTimedOut = fmt.Errorf("Get \"https://server\": %w (Client.Timeout exceeded while awaiting headers)", context.DeadlineExceeded)

// The contract of not-ready errors, one row for each thing that can be in one.
func TestNotReadyErrorContract(t *testing.T) {
	type E = NotReadyError
	revoked := func(reason invalidation.Reason, cause error) *invalidation.Revocation {
		return &invalidation.Revocation{Generation: 1, Reason: reason, Cause: cause, ResourceVersion: "7"}
	}
	all := map[string]error{ // what may be asked for
		"ErrNotReady": ErrNotReady, "ErrNotStarted": ErrNotStarted,
		"Canceled": context.Canceled, "DeadlineExceeded": context.DeadlineExceeded,
		"Forbidden": invalidation.Forbidden, "Unauthorized": invalidation.Unauthorized, "ResourceGone": invalidation.ResourceGone,
		"Relist": invalidation.Relist, "BadData": invalidation.BadData, "Requested": invalidation.Requested,
		"Closed": invalidation.Closed, "test": errTest,
	}
	for name, tc := range map[string]struct {
		err    E
		is     []string // of all; nothing else
		status int32    // the API status that errors.As finds, 0 if none
		says   []string
	}{
		"not started": {
			err: E{Store: "pods", Generation: 1}, is: []string{"ErrNotStarted"},
			says: []string{"store is not ready: pods, generation 1", "Run was not called"},
		},
		"never ready": {
			err:  E{Store: "pods", Generation: 1, started: true, Since: time.Unix(0, 0).UTC(), Phase: "listing"},
			says: []string{"pods, generation 1: never ready since its start at 1970-01-01T00:00:00Z; listing"},
		},
		"first list fails": {
			err:  E{Generation: 1, started: true, Phase: "waiting to retry", LastError: errTest},
			is:   []string{"test"},
			says: []string{"waiting to retry; last error: the program's own reason"},
		},
		"refused": {
			err: E{Generation: 2, started: true, Revocation: revoked(invalidation.Forbidden, forbidden), LastError: forbidden},
			is:  []string{"Forbidden"}, status: http.StatusForbidden,
			says: []string{"generation 2", "generation 1 revoked at", "Forbidden (last resource version 7)", "the user may not list it"},
		},
		"refused, and the next attempt failed otherwise": {
			err: E{Generation: 2, started: true, Revocation: revoked(invalidation.Forbidden, forbidden), LastError: busy},
			is:  []string{"Forbidden"}, status: http.StatusForbidden,
			says: []string{"the user may not list it", "last error: later"},
		},
		"refused while the reason is another one": {
			err: E{Generation: 2, started: true, Revocation: revoked(invalidation.Relist, nil), LastError: forbidden},
			is:  []string{"Relist"}, status: http.StatusForbidden,
			says: []string{"Relist", "last error: configmaps is forbidden"},
		},
		"no such resource": {
			err:  E{Generation: 2, started: true, Revocation: revoked(invalidation.ResourceGone, noCRD), LastError: noCRD},
			is:   []string{"ResourceGone"},
			says: []string{"ResourceGone", "could not find the requested resource"},
		},
		"no such resource, and a policy with a reason of its own": {
			err: E{Generation: 2, started: true, Revocation: revoked("Nervous", noCRD), LastError: noCRD},
		},
		"a 404 as the last error alone": {
			err: E{Generation: 1, started: true, LastError: noCRD},
		},
		"revoked by a program that found something absent": {
			err: E{Generation: 2, started: true, Revocation: revoked(invalidation.Requested, notFound)},
			is:  []string{"Requested"},
		},
		"closed by an errgroup in which something was absent": {
			err: E{Generation: 2, started: true, Revocation: revoked(invalidation.Closed, notFound)},
			is:  []string{"Closed"},
		},
		"waited in an errgroup in which something was absent": {
			err: E{Generation: 2, started: true, Waited: notFound},
		},
		"server timed out": {
			err:  E{Generation: 1, started: true, LastError: errServerTimedOut},
			says: []string{"last error: Get \"https://server\": context deadline exceeded"},
		},
		"server timed out, and a policy revokes for that": {
			err: E{Generation: 2, started: true, Revocation: revoked("Nervous", errServerTimedOut), LastError: errServerTimedOut},
		},
		"reader cancelled": {
			err: E{Generation: 1, started: true, Waited: context.Canceled}, is: []string{"Canceled"},
			says: []string{"gave up waiting: context canceled"},
		},
		"reader out of time": {
			err: E{Generation: 2, started: true, Waited: context.DeadlineExceeded, Revocation: revoked(invalidation.Relist, nil)},
			is:  []string{"DeadlineExceeded", "Relist"},
		},
		"reader out of time before Run": {
			err: E{Generation: 1, Waited: context.DeadlineExceeded}, is: []string{"DeadlineExceeded", "ErrNotStarted"},
		},
		"closed": {
			err: E{Generation: 1, started: true, Revocation: revoked(invalidation.Closed, errTest)},
			is:  []string{"Closed", "test"}, says: []string{"Closed", errTest.Error()},
		},
		"closed by a cancelled context": {
			err: E{Generation: 1, started: true, Revocation: revoked(invalidation.Closed, context.Canceled)},
			is:  []string{"Closed", "Canceled"},
		},
		"bad data": {
			err: E{Generation: 2, started: true, Revocation: revoked(invalidation.BadData, errTest)}, is: []string{"BadData", "test"},
		},
		"requested by a program whose request was cancelled": {
			err: E{Generation: 2, started: true, Revocation: revoked(invalidation.Requested, context.Canceled)}, is: []string{"Requested"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			err := fmt.Errorf("wrapped by the program: %w", &tc.err)
			var got []string
			for what, target := range all {
				if errors.Is(err, target) {
					got = append(got, what)
				}
			}
			assert.ElementsMatch(t, append(tc.is, "ErrNotReady"), got, "errors.Is")
			assert.False(t, apierrors.IsNotFound(err), "IsNotFound is an answer about an object, and this is none")

			var status *apierrors.StatusError
			if tc.status == 0 {
				assert.False(t, errors.As(err, &status), "found %v", status)
			} else if assert.ErrorAs(t, err, &status) {
				assert.Equal(t, tc.status, status.Status().Code)
			}
			var e *NotReadyError
			require.ErrorAs(t, err, &e)
			var rev *invalidation.Revocation
			if assert.Equal(t, tc.err.Revocation != nil, errors.As(err, &rev)) && rev != nil {
				assert.Same(t, tc.err.Revocation, rev)
			}
			for _, text := range tc.says {
				assert.Contains(t, err.Error(), text)
			}
		})
	}
}

// An error of the program's own that carries another store's revocation must not
// hide this store's.
func TestOwnRevocationComesFirst(t *testing.T) {
	own := &invalidation.Revocation{Reason: invalidation.Relist}
	other := &invalidation.Revocation{Reason: invalidation.Forbidden}
	err := &NotReadyError{started: true, Revocation: own, Waited: other}
	var rev *invalidation.Revocation
	require.ErrorAs(t, err, &rev)
	assert.Same(t, own, rev)
}

// Any type of error can be a cause, also those that cannot be compared.
func TestErrorsThatCannotBeCompared(t *testing.T) {
	cause := utilerrors.NewAggregate([]error{errTest, busy})
	err := &NotReadyError{started: true, Revocation: &invalidation.Revocation{Reason: "Nervous", Cause: cause}, LastError: cause}
	assert.NotPanics(t, func() {
		assert.Equal(t, 1, strings.Count(err.Error(), errTest.Error()), "said once: %v", err)
		assert.ErrorIs(t, err, errTest)
		assert.NotErrorIs(t, err, context.Canceled)
	})
}

// C60: the four ways for a wait to end are four errors, also for contexts with a
// cause of their own.
func TestC60FourEndsOfAWait(t *testing.T) {
	type end struct{ cancelled, deadline, closed, refused bool }
	ends := func(err error) end {
		return end{errors.Is(err, context.Canceled), errors.Is(err, context.DeadlineExceeded),
			errors.Is(err, invalidation.Closed), errors.Is(err, invalidation.Forbidden)}
	}
	waits := map[string]func(*store, context.Context) error{
		"WaitReady": func(s *store, ctx context.Context) error { _, err := s.WaitReady(ctx); return err },
		"Get":       func(s *store, ctx context.Context) error { _, err := s.Get(ctx, key("A", "a")); return err },
		"List":      func(s *store, ctx context.Context) error { _, err := s.List(ctx); return err },
	}
	for name, wait := range waits {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				r := newRig(t)
				r.Begin()
				ctx, cancel := context.WithCancel(t.Context())
				time.AfterFunc(time.Second, cancel)
				assert.Equal(t, end{cancelled: true}, ends(wait(r.store, ctx)))

				ctx, cancelCause := context.WithCancelCause(t.Context())
				time.AfterFunc(time.Second, func() { cancelCause(errTest) })
				err := wait(r.store, ctx)
				assert.ErrorIs(t, err, errTest)
				assert.Equal(t, end{cancelled: true}, ends(err), "WithCancelCause")

				ctx, cancel = context.WithTimeout(t.Context(), time.Second)
				defer cancel()
				assert.Equal(t, end{deadline: true}, ends(wait(r.store, ctx)))

				ctx, cancel = context.WithTimeoutCause(t.Context(), time.Second, errTest)
				defer cancel()
				err = wait(r.store, ctx)
				assert.ErrorIs(t, err, errTest)
				assert.Equal(t, end{deadline: true}, ends(err), "WithTimeoutCause")

				r.revokeFor(invalidation.NotAllowed, forbidden)
				ctx, cancel = context.WithTimeout(t.Context(), time.Second)
				defer cancel()
				assert.Equal(t, end{deadline: true, refused: true}, ends(wait(r.store, ctx)))

				time.AfterFunc(time.Second, func() { r.close(errTest) })
				err = wait(r.store, t.Context())
				assert.Equal(t, end{closed: true}, ends(err))
				assert.ErrorIs(t, err, errTest)
			})
		})
	}
}

// C8, C18: what the server answers is in the errors of all reads within one
// round trip, also before the first sync, and nothing reads as empty (C13).
func TestC18RefusalIsInEveryError(t *testing.T) {
	for name, tc := range map[string]struct {
		answer error
		reason invalidation.Reason // empty if the token is kept
		status int32
	}{
		"401": {apierrors.NewUnauthorized("who are you?"), invalidation.Unauthorized, http.StatusUnauthorized},
		"403": {forbidden, invalidation.Forbidden, http.StatusForbidden},
		"404": {noCRD, invalidation.ResourceGone, 0},
		"429": {busy, "", http.StatusTooManyRequests},
		"500": {apierrors.NewInternalError(errTest), "", http.StatusInternalServerError},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s := newStore(t, failing(tc.answer))
				stop := start(t, s)
				defer stop(nil)
				synctest.Wait()
				_, snapshotErr := s.Snapshot()
				got, getErr := s.Get(over(), key("A", "a"))
				assert.Nil(t, got)
				list, listErr := s.List(over())
				assert.Nil(t, list)
				_, waitErr := s.WaitReady(over())
				for what, err := range map[string]error{"Snapshot": snapshotErr, "Get": getErr, "List": listErr, "WaitReady": waitErr} {
					assert.ErrorIs(t, err, ErrNotReady, what)
					assert.Contains(t, err.Error(), tc.answer.Error(), what)
					assert.Contains(t, err.Error(), "waiting to retry", what)
					assert.False(t, apierrors.IsNotFound(err), what)
					if tc.reason != "" {
						assert.ErrorIs(t, err, tc.reason, what)
					}
					var status *apierrors.StatusError
					assert.Equal(t, tc.status != 0, errors.As(err, &status), what)
					if status != nil {
						assert.Equal(t, tc.status, status.Status().Code, what)
					}
				}
			})
		})
	}
}

// Since when: Since is when the store was last ready, and its start if it never
// was, whatever happened in the meantime.
func TestSinceWhen(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t)
		since := func() time.Time {
			_, err := r.Snapshot()
			var e *NotReadyError
			require.ErrorAs(t, err, &e)
			return e.Since
		}
		r.Begin()
		began := time.Now()
		time.Sleep(time.Second)
		assert.Equal(t, began, since())
		r.revokeFor(invalidation.NotAllowed, forbidden) // without ever having been ready
		time.Sleep(time.Second)
		assert.Equal(t, began, since(), "never ready: since the start")

		r.publishSet(t, "1")
		time.Sleep(time.Second)
		ended := time.Now()
		r.revokeFor(invalidation.VersionExpired, nil)
		time.Sleep(time.Second)
		assert.Equal(t, ended, since())
		r.revokeFor(invalidation.NotAllowed, forbidden) // the relist is refused
		time.Sleep(time.Second)
		assert.Equal(t, ended, since(), "not ready since the relist began")
	})
}

// secret is what must not be seen in any error, log or status.
const secret = "hunter2-hunter2"

type opaque struct {
	metav1.TypeMeta
	Value string
}

func (o *opaque) DeepCopyObject() runtime.Object { c := *o; return &c }

// oddList is a list of things that are no objects.
type oddList struct {
	metav1.TypeMeta
	metav1.ListMeta
	Items []oddItem
}

type oddItem struct{ Value string }

func (l *oddList) DeepCopyObject() runtime.Object { c := *l; return &c }

// Object contents are in no error, status or log: errors travel further than
// rights do.
func TestNoContentsInErrors(t *testing.T) {
	encoded := base64.StdEncoding.EncodeToString([]byte(secret))
	secretOf := func(name, version string) *corev1.Secret {
		return &corev1.Secret{
			TypeMeta:   metav1.TypeMeta{APIVersion: "v1", Kind: "Secret"},
			ObjectMeta: metav1.ObjectMeta{Namespace: "A", Name: name, ResourceVersion: version, Annotations: map[string]string{"x": secret}},
			Data:       map[string][]byte{"password": []byte(secret)},
			StringData: map[string]string{"password": secret},
		}
	}
	listOf := func(version string, secrets ...*corev1.Secret) *corev1.SecretList {
		list := &corev1.SecretList{ListMeta: metav1.ListMeta{ResourceVersion: version}}
		for _, s := range secrets {
			list.Items = append(list.Items, *s)
		}
		return list
	}
	asMap := mapOf("A", "wrong type", "3")
	asMap.Data = map[string]string{"password": secret}
	raw := fmt.Sprintf(`{"metadata":{"name":"a"},"data":{"password":"%s"}}`, encoded)

	for name, tc := range map[string]struct {
		list    runtime.Object
		listErr error
		event   *watch.Event
		reason  invalidation.Reason
	}{
		"wrong type in a list":         {list: mapList("1", asMap), reason: invalidation.BadData},
		"no name in a list":            {list: listOf("1", secretOf("", "1")), reason: invalidation.BadData},
		"a list that is none":          {list: secretOf("a", "1"), reason: invalidation.BadData},
		"a list of other things":       {list: &oddList{Items: []oddItem{{secret}}}, reason: invalidation.BadData},
		"an answer without a kind":     {listErr: runtime.NewMissingKindErr(raw), reason: invalidation.BadData},
		"an answer without a version":  {listErr: runtime.NewMissingVersionErr(raw), reason: invalidation.BadData},
		"wrong type in an event":       {event: &watch.Event{Type: watch.Added, Object: asMap}, reason: invalidation.BadData},
		"no name in an event":          {event: &watch.Event{Type: watch.Added, Object: secretOf("", "9")}, reason: invalidation.BadData},
		"out of order":                 {event: &watch.Event{Type: watch.Added, Object: secretOf("b", "2")}, reason: invalidation.Rewound},
		"a bookmark out of order":      {event: &watch.Event{Type: watch.Bookmark, Object: secretOf("", "2")}, reason: invalidation.Rewound},
		"an unknown event":             {event: &watch.Event{Type: "ODD", Object: secretOf("a", "9")}, reason: invalidation.BadData},
		"an error that is no Status":   {event: &watch.Event{Type: watch.Error, Object: secretOf("a", "9")}, reason: invalidation.BadData},
		"an object without metadata":   {event: &watch.Event{Type: watch.Added, Object: &opaque{Value: secret}}, reason: invalidation.BadData},
		"an error event with anything": {event: &watch.Event{Type: watch.Error, Object: &opaque{Value: secret}}, reason: invalidation.BadData},
		"an event that cannot be decoded": {event: &watch.Event{Type: watch.Error, Object: &metav1.Status{
			// as client-go's stream decoder reports it
			Status: metav1.StatusFailure, Code: http.StatusInternalServerError, Reason: metav1.StatusReasonInternalError,
			Message: fmt.Sprintf("unable to decode an event from the watch stream: %v", runtime.NewMissingKindErr(raw)),
			Details: &metav1.StatusDetails{Causes: []metav1.StatusCause{
				{Type: "UnexpectedServerResponse", Message: "unable to decode an event from the watch stream: " + raw},
				{Type: "ClientWatchDecoding", Message: "unable to decode an event from the watch stream: " + raw},
			}},
		}}, reason: invalidation.BadData},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				source := sourceOf(listOf("5", secretOf("a", "4")))
				if tc.list != nil || tc.listErr != nil {
					source.answer(tc.list, tc.listErr)
				}
				s, err := New[*corev1.Secret](source, Options{})
				require.NoError(t, err)
				stop := start(t, s)
				defer stop(nil)
				synctest.Wait()
				if tc.event != nil {
					_, err := s.Snapshot()
					require.NoError(t, err)
					source.events <- *tc.event
					synctest.Wait()
				}
				_, err = s.Snapshot()
				require.ErrorIs(t, err, tc.reason)
				var rev *invalidation.Revocation
				require.ErrorAs(t, err, &rev)
				for what, text := range map[string]string{
					"the error":          err.Error(),
					"the error, in Go":   fmt.Sprintf("%+v", err),
					"the revocation":     rev.Error(),
					"its cause":          fmt.Sprintf("%+v", rev.Cause),
					"the status":         fmt.Sprintf("%+v", s.Status()),
					"the watcher's last": fmt.Sprintf("%+v", s.Status().Watch.LastError),
				} {
					assert.NotContains(t, text, secret, what)
					assert.NotContains(t, text, encoded, what)
				}
			})
		})
	}
}

// The order of two loads must not make an error that contradicts itself: what is
// waited for comes after what ended.
func TestErrorsAreConsistent(t *testing.T) {
	r := newRig(t)
	while(func() {
		_, err := r.Snapshot()
		var e *NotReadyError
		if errors.As(err, &e) && e.Revocation != nil && e.Generation <= e.Revocation.Generation {
			t.Errorf("generation %d is waited for, and %d ended", e.Generation, e.Revocation.Generation)
		}
	}, func() {
		for range 5000 {
			r.store.Revoke(r.Token(), nil)
			if t.Failed() {
				return
			}
		}
	})
	assert.Equal(t, token.Pending, r.Token().State())
}
