package health

import (
	"bytes"
	"fmt"
	"maps"
	"net/http"
	"slices"
	"strings"
)

// ServeHTTP answers as kube-apiserver does: 200 and "ok" if the check passes, 500 and
// a line for each store if it does not. With ?verbose there is a line for each store
// in both cases; ?exclude=name leaves a store, or all stores of a group, out of the
// decision. Under a pattern of [http.ServeMux] with {check...} it answers for the
// store of that name alone, with its reason; 404 if there is none.
func (c *Check) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if name := r.PathValue("check"); name != "" {
		c.serveOne(w, r, name)
		return
	}
	query := r.URL.Query()
	excluded, used := map[string]bool{}, map[string]bool{}
	for _, name := range query["exclude"] {
		excluded[name] = true
	}
	var lines bytes.Buffer
	failed := false
	for _, o := range c.outcomes() {
		switch {
		case excluded[o.store]:
			used[o.store] = true
			fmt.Fprintf(&lines, "[+]%s excluded: ok\n", o.store)
		case o.group != "" && excluded[o.group]:
			used[o.group] = true
			fmt.Fprintf(&lines, "[+]%s excluded with %s: ok\n", o.store, o.group)
		case o.err != nil:
			failed = true
			why := "reason withheld"
			if c.Reasons {
				why = o.err.detail()
			}
			fmt.Fprintf(&lines, "[-]%s failed: %s\n", o.store, why)
		default:
			fmt.Fprintf(&lines, "[+]%s ok\n", o.store)
		}
	}
	maps.DeleteFunc(excluded, func(name string, _ bool) bool { return used[name] })
	if len(excluded) > 0 {
		var unknown []string
		for _, name := range slices.Sorted(maps.Keys(excluded)) {
			unknown = append(unknown, fmt.Sprintf("%q", name))
		}
		fmt.Fprintf(&lines, "warn: some health checks cannot be excluded: no matches for %s\n", strings.Join(unknown, ","))
	}
	if failed {
		http.Error(w, fmt.Sprintf("%s%s check failed", &lines, c.name), http.StatusInternalServerError)
		return
	}
	if _, verbose := query["verbose"]; !verbose {
		pass(w, "ok")
		return
	}
	pass(w, fmt.Sprintf("%s%s check passed\n", &lines, c.name))
}

// serveOne answers for the stores of one name.
func (c *Check) serveOne(w http.ResponseWriter, r *http.Request, name string) {
	known := false
	for _, o := range c.outcomes() {
		if o.store != name {
			continue
		}
		if o.err != nil {
			http.Error(w, fmt.Sprintf("internal server error: %v", o.err), http.StatusInternalServerError)
			return
		}
		known = true
	}
	if !known {
		http.NotFound(w, r)
		return
	}
	pass(w, "ok")
}

func pass(w http.ResponseWriter, text string) {
	w.Header().Set("Content-Type", "text/plain; charset=utf-8")
	w.Header().Set("X-Content-Type-Options", "nosniff")
	fmt.Fprint(w, text)
}
