package cluster

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"time"

	"k8s.io/client-go/rest"
)

// waitOK asks for each path until it is answered with 200. It leaves no
// connection behind.
func waitOK(ctx context.Context, config *rest.Config, paths ...string) error {
	ctx, cancel := context.WithTimeoutCause(ctx, startTimeout, errors.New("not ready in time"))
	defer cancel()
	tlsConfig, err := rest.TLSConfigFor(config)
	if err != nil {
		return err
	}
	client := &http.Client{
		Transport: &http.Transport{TLSClientConfig: tlsConfig, DisableKeepAlives: true},
		Timeout:   5 * time.Second,
	}
	for _, path := range paths {
		for {
			err := get(ctx, client, config.Host+path)
			if err == nil {
				break
			}
			select {
			case <-ctx.Done():
				return fmt.Errorf("%w: %w", context.Cause(ctx), err)
			case <-time.After(50 * time.Millisecond):
			}
		}
	}
	return nil
}

// get returns an error for every answer but 200.
func get(ctx context.Context, client *http.Client, url string) error {
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
	if err != nil {
		return err
	}
	response, err := client.Do(request)
	if err != nil {
		return err
	}
	defer response.Body.Close()
	body, err := io.ReadAll(response.Body)
	if err == nil && response.StatusCode != http.StatusOK {
		err = fmt.Errorf("%s: %s: %s", url, response.Status, body)
	}
	return err
}
