package debug_test

import (
	"context"
	"errors"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"golang.org/x/net/html"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/kubernetes"
	"k8s.io/klog/v2"

	"github.com/kube-safestore/kube-safestore/internal/wiretest"
	"github.com/kube-safestore/kube-safestore/safestore"
	"github.com/kube-safestore/kube-safestore/safestore/debug"
	"github.com/kube-safestore/kube-safestore/watcher"
)

var secrets = wiretest.Kind{GroupVersionResource: corev1.SchemeGroupVersion.WithResource("secrets"), Kind: "Secret"}

// treasure is what no page may show.
const treasure = "hunter2"

// wire is a store of Secrets on a server in memory. Time is virtual.
type wire struct {
	*wiretest.Server
	store *safestore.Store[*corev1.Secret]
	stop  context.CancelFunc
}

// onWire runs a test in a bubble, with a store that is not yet started.
func onWire(t *testing.T, name string, test func(t *testing.T, w *wire, run func())) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		w := &wire{Server: wiretest.New(t)}
		w.Resource(secrets).Set(&corev1.Secret{
			TypeMeta:   metav1.TypeMeta{APIVersion: "v1", Kind: "Secret"},
			ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "login", Annotations: map[string]string{"note": treasure}},
			StringData: map[string]string{"password": treasure}, Data: map[string][]byte{"password": []byte(treasure)},
		})
		var err error
		w.store, err = safestore.New[*corev1.Secret](
			watcher.ListWatch(kubernetes.NewForConfigOrDie(w.Config()).CoreV1().Secrets("")), safestore.Options{Name: name})
		require.NoError(t, err)
		ctx, cancel := context.WithCancel(klog.NewContext(t.Context(), klog.Logger{}))
		w.stop = cancel
		t.Cleanup(cancel)
		test(t, w, func() {
			go w.store.Run(ctx)
			synctest.Wait()
		})
	})
}

func after(d time.Duration) {
	time.Sleep(d)
	synctest.Wait()
}

// get returns the page, parsed, which must be well formed and come at once.
func get(t *testing.T, h http.Handler, url string) *element {
	t.Helper()
	begun := time.Now()
	w := httptest.NewRecorder()
	h.ServeHTTP(w, httptest.NewRequest(http.MethodGet, url, nil))
	assert.Zero(t, time.Since(begun), "it does not wait")
	require.Equal(t, http.StatusOK, w.Code, w.Body)
	assert.NotContains(t, w.Body.String(), treasure)
	assert.NotContains(t, w.Body.String(), "ZgotmplZ", "what a template refuses to print")
	assert.Equal(t, "text/html; charset=utf-8", w.Header().Get("Content-Type"))
	assert.Regexp(t, "^default-src 'none'; style-src 'unsafe-inline';", w.Header().Get("Content-Security-Policy"))
	root, err := html.Parse(w.Body)
	require.NoError(t, err)
	return &element{root}
}

// element is a part of the page.
type element struct{ *html.Node }

// find returns the elements of that name, and of that class unless it is empty.
func (e *element) find(name, class string) (all []*element) {
	for n := range e.Descendants() {
		one := &element{n}
		if n.Type == html.ElementNode && n.Data == name && (class == "" || strings.Contains(" "+one.attribute("class")+" ", " "+class+" ")) {
			all = append(all, one)
		}
	}
	return all
}

func (e *element) attribute(name string) string {
	for _, a := range e.Attr {
		if a.Key == name {
			return a.Val
		}
	}
	return ""
}

// text is what is read, with single spaces.
func (e *element) text() string {
	var b strings.Builder
	for n := range e.Descendants() {
		if n.Type == html.TextNode && n.Parent.Data != "style" {
			b.WriteString(n.Data + " ")
		}
	}
	return strings.Join(strings.Fields(b.String()), " ")
}

func texts(all []*element) (texts []string) {
	for _, e := range all {
		texts = append(texts, e.text())
	}
	return texts
}

func TestPageTellsTheStory(t *testing.T) {
	onWire(t, "secrets", func(t *testing.T, w *wire, run func()) {
		h := debug.Handler(w.store)
		assert.Contains(t, get(t, h, "/").text(), "✕ not ready: Run was not called")
		run()
		after(10 * time.Minute)
		page := get(t, h, "/")
		assert.Contains(t, page.text(), "1 of 1 stores ready")
		assert.Contains(t, page.find("tbody", "store")[0].text(), "secrets ● ready 10m00s 1 ")
		assert.Contains(t, page.find("tbody", "store")[0].text(), " ago 1 1001 watching")

		tok := w.store.Token()
		require.True(t, w.store.Revoke(tok, errors.New("a whim")))
		_, err := w.store.WaitReady(t.Context())
		require.NoError(t, err)
		after(10 * time.Minute)
		heal := w.Break(wiretest.All, wiretest.Answer(apierrors.NewForbidden(schema.GroupResource{Resource: "secrets"}, "",
			errors.New(`<script>alert("x")</script>`))))
		w.Cut()
		after(10 * time.Minute)
		page = get(t, h, "/?window=1h&refresh=7")
		assert.Empty(t, page.find("script", ""))
		assert.Equal(t, "7", page.find("meta", "")[3].attribute("content"))
		row := page.find("tbody", "store")[0].text()
		assert.Regexp(t, `^secrets ✕ not ready: Forbidden (9m59s|10m00s) 3 .* 0 waiting to retry, again in `, row)
		assert.Contains(t, row, `secrets is forbidden: <script>alert("x")</script> the last error, `)
		assert.Contains(t, row, "failures in a row: ")

		bars := page.find("div", "track")
		require.Len(t, bars, 1)
		assert.Equal(t, []string{"ready", "Requested", "ready", "Forbidden"}, texts(bars[0].find("b", "")))
		last := bars[0].find("span", "unready")[1]
		assert.Contains(t, last.attribute("title"), "Forbidden, generation 3, ")
		assert.Regexp(t, `^left: 83\.\d+%; width: 16\.\d+%$`, last.attribute("style"))
		lines := texts(page.find("li", ""))
		require.Len(t, lines, 4)
		assert.Regexp(t, `^\d\d:\d\d:\d\d , (9m59s|10m00s) ago generation 2 revoked: Forbidden watch: secrets is forbidden: <script>`, lines[0])
		assert.Regexp(t, `generation 2 ready with 1 objects at version 1001$`, lines[1])
		assert.Regexp(t, `generation 1 revoked: Requested a whim$`, lines[2])
		heal()
		w.stop()
		after(0)
		assert.Contains(t, get(t, h, "/").text(), "○ closed: Closed")
	})
}

// Names come from programs, and errors from servers.
func TestPageEscapes(t *testing.T) {
	onWire(t, `<img src=x onerror="alert(1)">`, func(t *testing.T, w *wire, run func()) {
		run()
		page := get(t, debug.Handler(w.store), "/")
		assert.Empty(t, page.find("img", ""))
		assert.Equal(t, `<img src=x onerror="alert(1)">`, page.find("th", "")[9].text())
	})
}

// There is nothing to fetch, and nothing that runs.
func TestPageIsWholeInItself(t *testing.T) {
	onWire(t, "secrets", func(t *testing.T, w *wire, run func()) {
		run()
		page := get(t, debug.Handler(w.store), "/")
		for _, name := range []string{"script", "img", "iframe", "form", "object"} {
			assert.Empty(t, page.find(name, ""), name)
		}
		for n := range page.Descendants() {
			e := &element{n}
			assert.Empty(t, e.attribute("src"))
			if href := e.attribute("href"); href != "" {
				assert.True(t, strings.HasPrefix(href, "?") || href == "data:,", href)
			}
		}
		assert.NotContains(t, page.find("style", "")[0].FirstChild.Data, "url(")
		assert.Equal(t, "width=device-width, initial-scale=1", page.find("meta", "")[1].attribute("content"))
	})
}

func TestGroupsAreShownWithTheirStores(t *testing.T) {
	onWire(t, "secrets", func(t *testing.T, w *wire, run func()) {
		g, err := safestore.NewGroup("all", w.store)
		require.NoError(t, err)
		defer g.Close()
		run()
		page := get(t, debug.Handler(g), "/")
		groups, stores := page.find("tbody", "group"), page.find("tbody", "store")
		require.Len(t, groups, 1)
		require.Len(t, stores, 1)
		assert.Regexp(t, "^all group ● ready", groups[0].text())
		assert.Regexp(t, "^secrets in all ● ready", stores[0].text())
		assert.Len(t, page.find("div", "track"), 2)
		assert.Contains(t, page.text(), "1 of 1 stores ready", "a group is none")
	})
}

// A subscriber that is blocked is found here (C59).
func TestSubscriptionsAreShown(t *testing.T) {
	onWire(t, "secrets", func(t *testing.T, w *wire, run func()) {
		run()
		release := make(chan struct{})
		go func() {
			for change, err := range w.store.Subscribe("printer").Changes(t.Context()) {
				if err != nil {
					return
				}
				if change.Type == safestore.Added {
					<-release
				}
			}
		}()
		after(90 * time.Second)
		assert.Contains(t, get(t, debug.Handler(w.store), "/").text(), "Subscription printer: 0 changes, behind for 1m30s")
		close(release)
		after(0)
		assert.Contains(t, get(t, debug.Handler(w.store), "/").text(), "Subscription printer: 1 changes, caught up with generation 1")
		w.stop()
		after(0)
	})
}

func TestRequestsThatMakeNoSense(t *testing.T) {
	onWire(t, "secrets", func(t *testing.T, w *wire, _ func()) {
		h := debug.Handler(w.store)
		for url, want := range map[string]string{
			"/?window=long": `window is no duration such as 15m: "long"`,
			"/?window=-1h":  `window is no duration such as 15m: "-1h"`,
			"/?refresh=-1":  `refresh is no number of seconds: "-1"`,
		} {
			answer := httptest.NewRecorder()
			h.ServeHTTP(answer, httptest.NewRequest(http.MethodGet, url, nil))
			assert.Equal(t, http.StatusBadRequest, answer.Code, url)
			assert.Equal(t, want+"\n", answer.Body.String())
		}
		answer := httptest.NewRecorder()
		h.ServeHTTP(answer, httptest.NewRequest(http.MethodPost, "/", nil))
		assert.Equal(t, http.StatusMethodNotAllowed, answer.Code)
		assert.PanicsWithValue(t, "debug: no stores", func() { debug.Handler() })
		assert.PanicsWithValue(t, "debug: a store is nil", func() { debug.Handler(w.store, nil) })
	})
}
