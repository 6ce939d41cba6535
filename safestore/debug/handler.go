package debug

import (
	"bytes"
	_ "embed"
	"fmt"
	"html/template"
	"net/http"
	"reflect"
	"strconv"
	"time"

	"github.com/kube-safestore/kube-safestore/safestore"
)

//go:embed page.html
var source string

var page = template.Must(template.New("page").Parse(source))

// policy lets a browser use what is in the page, and fetch nothing.
const policy = "default-src 'none'; style-src 'unsafe-inline'; img-src data:; base-uri 'none'; form-action 'none'; frame-ancestors 'none'"

// Handler returns the page of these stores and groups. The stores of a group are
// shown below it. ?window=15m is the length of the timeline; if it is not given it
// begins with what is remembered, up to an hour ago. ?refresh=10 lets the browser
// fetch the page again every ten seconds.
//
// Handler panics without stores, and if one is nil.
func Handler(stores ...safestore.Readiness) http.Handler {
	if len(stores) == 0 {
		panic("debug: no stores")
	}
	for _, s := range stores {
		if v := reflect.ValueOf(s); s == nil || v.Kind() == reflect.Pointer && v.IsNil() {
			panic("debug: a store is nil")
		}
	}
	return handler(stores)
}

type handler []safestore.Readiness

func (stores handler) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if r.Method != http.MethodGet && r.Method != http.MethodHead {
		w.Header().Set("Allow", "GET, HEAD")
		http.Error(w, "method not allowed", http.StatusMethodNotAllowed)
		return
	}
	view, err := stores.view(r)
	if err != nil {
		http.Error(w, err.Error(), http.StatusBadRequest)
		return
	}
	var b bytes.Buffer
	if err := page.Execute(&b, view); err != nil {
		http.Error(w, err.Error(), http.StatusInternalServerError)
		return
	}
	h := w.Header()
	h.Set("Content-Type", "text/html; charset=utf-8")
	h.Set("Content-Security-Policy", policy)
	h.Set("X-Content-Type-Options", "nosniff")
	h.Set("Referrer-Policy", "no-referrer")
	h.Set("Cache-Control", "no-store")
	_, _ = w.Write(b.Bytes())
}

// view asks the stores for what is on the page.
func (stores handler) view(r *http.Request) (*view, error) {
	query := r.URL.Query()
	now, refresh := time.Now(), 0
	for _, m := range stores {
		_ = m.NotReady() // finds out that a bound has passed, so that the status says so
	}
	length := stores.age(now)
	if given := query.Get("window"); given != "" {
		var err error
		if length, err = time.ParseDuration(given); err != nil || length <= 0 {
			return nil, fmt.Errorf("window is no duration such as 15m: %q", given)
		}
	}
	if given := query.Get("refresh"); given != "" {
		var err error
		if refresh, err = strconv.Atoi(given); err != nil || refresh < 0 {
			return nil, fmt.Errorf("refresh is no number of seconds: %q", given)
		}
	}
	v := newView(window{now.Add(-length), now}, query.Get("window") == "", refresh)
	for _, m := range stores {
		v.add(m)
	}
	return v, nil
}

// age is how long ago the oldest move was, from a minute to an hour.
func (stores handler) age(now time.Time) time.Duration {
	age := time.Minute
	for _, m := range stores {
		for _, s := range append(m.Stores(), m.Status()) {
			if len(s.Transitions) > 0 {
				age = max(age, now.Sub(s.Transitions[0].At))
			}
		}
	}
	return min(age, time.Hour)
}
