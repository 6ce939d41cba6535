package system

import (
	"errors"
	"net/http"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

type refusing struct{}

var errRefused = errors.New("refused")

func (refusing) RoundTrip(*http.Request) (*http.Response, error) { return nil, errRefused }

func TestRequestsForTheWholeSetAreCounted(t *testing.T) {
	for query, isSet := range map[string]bool{
		"":                                true,
		"limit=500":                       true,
		"limit=500&continue=x":            false,
		"limit=1":                         false, // a probe
		"watch=true&resourceVersion=5":    false,
		"watch=1&sendInitialEvents=true":  true,
		"watch=true&sendInitialEvents=1":  true,
		"watch=true&allowWatchBookmarks=": false,
	} {
		c := &counter{next: refusing{}}
		request, err := http.NewRequestWithContext(t.Context(), http.MethodGet, "https://server/?"+query, nil)
		require.NoError(t, err)
		_, err = c.RoundTrip(request)
		require.ErrorIs(t, err, errRefused)
		assert.EqualValues(t, 1, c.requests.Load(), query)
		assert.Equal(t, isSet, c.sets.Load() == 1, query)
	}
}
