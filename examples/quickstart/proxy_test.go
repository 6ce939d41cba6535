package main

import (
	"bufio"
	"fmt"
	"net/http"
	"net/http/httptest"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"k8s.io/client-go/rest"
)

func TestProxy(t *testing.T) {
	events := map[string]chan string{"first": make(chan string), "second": make(chan string)} // by watch
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if !r.URL.Query().Has("watch") {
			fmt.Fprintf(w, "%s as %s", r.Header.Get("Authorization"), r.Header.Get("Impersonate-User"))
			return
		}
		w.(http.Flusher).Flush()
		for {
			select {
			case event := <-events[r.URL.Query().Get("watch")]:
				fmt.Fprintln(w, event)
				w.(http.Flusher).Flush()
			case <-r.Context().Done():
				return
			}
		}
	}))
	defer server.Close()
	p, err := startProxy(&rest.Config{Host: server.URL, BearerToken: "secret", Impersonate: rest.ImpersonationConfig{UserName: "reader"}})
	require.NoError(t, err)
	defer func() { assert.NoError(t, p.stop()) }()
	client := &http.Client{Transport: &http.Transport{}}
	defer client.CloseIdleConnections()
	ask := func(query, key string) *http.Response {
		r, err := http.NewRequestWithContext(t.Context(), http.MethodGet, p.address+"/"+query, nil)
		require.NoError(t, err)
		r.Header.Set("Authorization", "Bearer "+key)
		r.Header.Set("Impersonate-User", "admin")
		r.Header.Set("User-Agent", "me")
		response, err := client.Do(r)
		require.NoError(t, err)
		return response
	}
	line := func(r *http.Response) string {
		text, _ := bufio.NewReader(r.Body).ReadString('\n')
		return text
	}

	assert.False(t, p.stall("me"), "no watch is open")
	stranger := ask("", "guessed")
	assert.Equal(t, http.StatusForbidden, stranger.StatusCode)
	stranger.Body.Close()
	reader := ask("", p.key)
	assert.Equal(t, "Bearer secret as reader", line(reader), "nobody says who he is")
	reader.Body.Close()
	p.down.Store(true)
	refused := ask("", p.key)
	assert.Equal(t, http.StatusBadGateway, refused.StatusCode)
	refused.Body.Close()
	p.down.Store(false)

	stalled := ask("?watch=first", p.key)
	events["first"] <- "a"
	assert.Equal(t, "a\n", line(stalled))
	assert.False(t, p.stall("me", "other"), "one of them has none open")
	require.True(t, p.stall("me"))
	events["first"] <- "b"
	fresh := ask("?watch=second", p.key)
	events["second"] <- "c"
	assert.Equal(t, "c\n", line(fresh), "new watches pass")
	fresh.Body.Close()
	stalled.Body.Close()
}
