package browser

import (
	"context"
	_ "embed"
	"fmt"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/chromedp/cdproto/cdp"
	"github.com/chromedp/cdproto/emulation"
	"github.com/chromedp/cdproto/log"
	"github.com/chromedp/cdproto/network"
	"github.com/chromedp/cdproto/runtime"
	"github.com/chromedp/chromedp"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/kube-safestore/kube-safestore/safestore/debug"
)

// required and screenshots are the environment's say: that there must be a browser,
// and a directory for pictures of what was tested.
const (
	required    = "REQUIRE_CHROMIUM"
	screenshots = "SCREENSHOTS"
)

// start starts a browser, and ends it with the test. chromedp speaks its protocol
// in Go, so that no node and no driver is needed.
func start(t *testing.T) context.Context {
	t.Helper()
	program := ""
	for _, name := range []string{"chromium", "chromium-browser", "google-chrome"} {
		if path, err := exec.LookPath(name); err == nil && program == "" {
			program = path
		}
	}
	switch {
	case program == "" && os.Getenv(required) != "":
		t.Fatalf("%s is set, and there is no chromium, chromium-browser or google-chrome in PATH", required)
	case program == "":
		t.Skip("there is no chromium, chromium-browser or google-chrome in PATH: the page is not looked at in a browser")
	}
	options := append(chromedp.DefaultExecAllocatorOptions[:],
		chromedp.ExecPath(program), chromedp.UserDataDir(t.TempDir()), chromedp.NoSandbox, chromedp.DisableGPU,
		chromedp.NoFirstRun, chromedp.Flag("disable-quic", true), chromedp.Flag("disable-background-networking", true),
		chromedp.Flag("disable-component-update", true), chromedp.Flag("disable-sync", true))
	ctx, end := chromedp.NewExecAllocator(t.Context(), options...)
	t.Cleanup(end)
	ctx, closeTab := chromedp.NewContext(ctx)
	t.Cleanup(closeTab)
	require.NoError(t, chromedp.Do(ctx))
	return ctx
}

// readable.js returns what of the page cannot be read, or does not fit.
//
//go:embed readable.js
var readable string

// seen is what readable.js returns.
type seen struct {
	Scheme          string   // "light" or "dark", as the page looks
	Width, Overflow float64  // of the page
	Faint           []string // texts with a contrast under 4.5
	Wide            []string // elements that stick out
	Rows, Tracks    int
	Texts           int // how many were looked at
}

// call is a command of the protocol as a step.
func call[P any](command cdp.Command[P, cdp.Empty], params P) chromedp.Action[chromedp.Void] {
	return func(ctx context.Context, tab *chromedp.Target) (chromedp.Void, error) {
		_, err := cdp.Call(ctx, tab, command, params)
		return chromedp.Void{}, err
	}
}

// reports are what the browser says of its own accord.
type reports struct {
	mu                 sync.Mutex
	requests, messages []string
}

func (s *reports) all() (requests, messages []string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Clone(s.requests), slices.Clone(s.messages)
}

func (s *reports) hear(event any) {
	s.mu.Lock()
	defer s.mu.Unlock()
	switch e := event.(type) {
	case *network.EventRequestWillBeSent:
		s.requests = append(s.requests, e.Request.URL)
	case *runtime.EventConsoleAPICalled:
		s.messages = append(s.messages, fmt.Sprint(e.Type))
	case *runtime.EventExceptionThrown:
		s.messages = append(s.messages, e.ExceptionDetails.Text)
	case *log.EventEntryAdded:
		s.messages = append(s.messages, e.Entry.Text)
	}
}

func TestPageCanBeRead(t *testing.T) {
	browser := start(t)
	members := stores(t)
	server := httptest.NewServer(debug.Handler(members...))
	t.Cleanup(server.Close)
	for _, width := range []int64{390, 1280} {
		for _, scheme := range []string{"light", "dark"} {
			t.Run(fmt.Sprintf("%s, %d px", scheme, width), func(t *testing.T) {
				ctx, cancel := context.WithTimeout(browser, time.Minute)
				defer cancel()
				ctx, closeTab := chromedp.NewContext(ctx)
				defer closeTab()
				var heard reports
				require.NoError(t, chromedp.Listen(ctx, heard.hear))
				require.NoError(t, chromedp.Do(ctx,
					call(network.Enable, network.EnableParams{}), call(log.Enable, cdp.Empty{}), call(runtime.Enable, cdp.Empty{}),
					call(emulation.SetDeviceMetricsOverride, emulation.SetDeviceMetricsOverrideParams{
						Width: width, Height: 844, DeviceScaleFactor: 2, Mobile: width < 500,
					}),
					call(emulation.SetEmulatedMedia, emulation.SetEmulatedMediaParams{
						Features: []*emulation.MediaFeature{{Name: "prefers-color-scheme", Value: scheme}},
					}),
					chromedp.Navigate(server.URL+"/")))
				got, err := chromedp.Run(ctx, chromedp.Evaluate[seen](readable))
				require.NoError(t, err)
				if dir := os.Getenv(screenshots); dir != "" {
					picture, err := chromedp.Run(ctx, chromedp.FullScreenshot(100))
					require.NoError(t, err)
					require.NoError(t, os.WriteFile(filepath.Join(dir, fmt.Sprintf("%s-%d.png", scheme, width)), picture, 0o644))
				}
				assert.Equal(t, scheme, got.Scheme)
				assert.LessOrEqual(t, got.Overflow, got.Width, "the page scrolls sideways")
				assert.Equal(t, float64(width), got.Width)
				assert.Empty(t, got.Wide)
				assert.Empty(t, got.Faint)
				assert.Greater(t, got.Texts, 50)
				assert.Equal(t, 7, got.Rows, "five members, two of them in a group")
				assert.Equal(t, 7, got.Tracks)
				requests, messages := heard.all()
				assert.Equal(t, []string{server.URL + "/"}, requests)
				assert.Empty(t, messages)
			})
		}
	}
}
