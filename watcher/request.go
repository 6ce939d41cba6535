package watcher

import (
	"context"
	"math/rand/v2"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/util/watchlist"
)

// list returns the request for a list.
func (w *Watcher) list(source Source, opts metav1.ListOptions) func(context.Context) answer {
	return func(ctx context.Context) answer {
		list, err := source.ListWithContext(ctx, opts)
		return answer{list: list, err: err}
	}
}

// watch returns the request for a watch that the server is asked to end after
// length.
func (w *Watcher) watch(opts metav1.ListOptions, length time.Duration) func(context.Context) answer {
	seconds := int64(length / time.Second)
	opts.TimeoutSeconds = &seconds
	return func(ctx context.Context) answer {
		stream, err := w.source.WatchWithContext(ctx, opts)
		return answer{stream: stream, err: err}
	}
}

// ask makes a request on the main exchange.
func (w *Watcher) ask(ctx context.Context, r request) {
	if r == askPage {
		w.main.ask(ctx, &w.calls, listVerb, w.list(w.source, w.pageOptions()))
		return
	}
	length := w.opts.WatchTimeout + rand.N(w.opts.WatchTimeout)
	w.main.ask(ctx, &w.calls, watchVerb, w.watch(w.watchOptions(r == askInitial), length))
	w.main.length = length
}

// pageOptions asks for a page of a consistent list: no resource version is the
// newest one, and a continue token carries its own. A relist could do with a
// list not older than the last one, but then a server that was rewound would
// refuse for ever (C28), and a first one could be from any time (C30).
func (w *Watcher) pageOptions() metav1.ListOptions {
	opts := metav1.ListOptions{Continue: w.state.feed.next}
	if w.opts.PageSize > 0 && w.state.feed.restarts <= maxRestarts {
		opts.Limit = w.opts.PageSize
	}
	return opts
}

// watchOptions asks for a watch from the set's version, or for the initial set
// and what follows it.
func (w *Watcher) watchOptions(initial bool) metav1.ListOptions {
	if initial {
		// The empty version makes it consistent, as with pageOptions.
		opts, _, _ := watchlist.PrepareWatchListOptionsFromListOptions(metav1.ListOptions{})
		return opts
	}
	return metav1.ListOptions{ResourceVersion: w.state.marks.complete, AllowWatchBookmarks: true}
}

// supportsWatchList reports whether a source can be asked for a WatchList: it is
// switched on in client-go's feature gates, and the source does not say that it
// cannot.
func supportsWatchList(source Source) bool {
	_, enabled, err := watchlist.PrepareWatchListOptionsFromListOptions(metav1.ListOptions{})
	return err == nil && enabled && !watchlist.DoesClientNotSupportWatchListSemantics(source)
}
